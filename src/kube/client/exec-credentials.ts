// Credentials from another program, as a kubeconfig's `exec` section says: run it, read the ExecCredential it prints,
// remember it until it runs out or the server refuses it. The program never talks to a person: there may be none.

import type { Command, CommandResult, Host } from '../../base/host.ts';
import type { HttpAccess } from '../../base/http.ts';
import type { Clock } from '../../base/world.ts';

export interface ExecConfig {
  readonly apiVersion?: string;
  readonly command?: string;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
  readonly installHint?: string;
  readonly interactiveMode?: 'Never' | 'IfAvailable' | 'Always';
  readonly provideClusterInfo?: boolean;
}

export interface ExecOptions {
  readonly host: Host;
  readonly clock: Clock;
  /** The kubeconfig and user this belongs to, for error messages. */
  readonly where: string;
  /** The cluster, passed to the program if the section asks for it. */
  readonly access: HttpAccess;
}

interface Credential {
  readonly token?: string;
  readonly pair?: { readonly certificate: string; readonly key: string };
  readonly expiresMs: number;
}

interface ExecCredential {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly status?: {
    readonly expirationTimestamp?: string;
    readonly token?: string;
    readonly clientCertificateData?: string;
    readonly clientKeyData?: string;
  };
}

const versions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];
const runTimeoutMs = 60_000;
/** Asked for anew this long before it runs out, so that no request is under way with a dead credential. */
const expiryMarginMs = 10_000;

export function createExecCredentials(
  config: ExecConfig,
  options: ExecOptions,
): Pick<HttpAccess, 'bearerToken' | 'clientCertificatePair' | 'onUnauthorized'> {
  const where = `${options.where}: exec`;
  checkConfig(config, where);
  let remembered: Credential | undefined;
  let running: Promise<Credential> | undefined;

  /** Those who ask while the program runs share its answer. */
  function credential(): Promise<Credential> {
    if (remembered !== undefined && options.clock.wallMs() < remembered.expiresMs) return Promise.resolve(remembered);
    running ??= run().finally(() => {
      running = undefined;
    });
    return running;
  }

  async function run(): Promise<Credential> {
    const command = commandOf(config, options);
    const result = await options.host.run(command);
    remembered = parseCredential(stdoutOf(result, config, where), config, where);
    return remembered;
  }

  return {
    bearerToken: async () => (await credential()).token,
    clientCertificatePair: async () => (await credential()).pair,
    onUnauthorized: () => {
      remembered = undefined;
    },
  };
}

function checkConfig(config: ExecConfig, where: string): void {
  if (!config.command) throw new Error(`${where}: command is not set`);
  if (!versions.includes(config.apiVersion ?? '')) {
    throw new Error(
      `${where}: apiVersion ${JSON.stringify(config.apiVersion ?? '')} is not supported; use ${versions.join(' or ')}`,
    );
  }
  if (config.interactiveMode === 'Always') {
    throw new Error(`${where}: interactiveMode Always needs a person at a terminal; use Never or IfAvailable`);
  }
}

function commandOf(config: ExecConfig, options: ExecOptions): Command {
  const environment: Record<string, string> = {};
  for (const { name, value } of config.env ?? []) environment[name] = value;
  environment['KUBERNETES_EXEC_INFO'] = JSON.stringify({
    apiVersion: config.apiVersion,
    kind: 'ExecCredential',
    spec: { interactive: false, ...(config.provideClusterInfo ? { cluster: clusterInfo(options.access) } : {}) },
  });
  return { program: config.command!, args: config.args ?? [], environment, timeoutMs: runTimeoutMs };
}

function clusterInfo({ server, serverName, insecureSkipVerify, certificateAuthority }: HttpAccess): object {
  const authority =
    certificateAuthority === undefined ? undefined : Buffer.from(certificateAuthority).toString('base64');
  return {
    server,
    'tls-server-name': serverName,
    'insecure-skip-tls-verify': insecureSkipVerify,
    'certificate-authority-data': authority,
  };
}

function stdoutOf(result: CommandResult, config: ExecConfig, where: string): string {
  const what = `${where}: ${config.command}`;
  if (result.kind === 'timed out') throw new Error(`${what}: did not end within ${runTimeoutMs / 1000} s`);
  if (result.kind === 'not started') {
    const hint = result.isMissing && config.installHint ? `; ${config.installHint.trim()}` : '';
    throw new Error(`${what}: could not be started: ${result.reason}${hint}`);
  }
  if (result.code !== 0) throw new Error(`${what}: ended with code ${result.code}: ${lastLines(result.stderr)}`);
  return result.stdout;
}

function parseCredential(stdout: string, config: ExecConfig, where: string): Credential {
  const what = `${where}: ${config.command}`;
  let parsed: ExecCredential;
  try {
    parsed = JSON.parse(stdout) as ExecCredential;
  } catch (cause) {
    throw new Error(`${what}: what it printed is not JSON`, { cause });
  }
  if (parsed.kind !== 'ExecCredential' || parsed.apiVersion !== config.apiVersion) {
    throw new Error(
      `${what}: printed ${parsed.apiVersion} ${parsed.kind}, expected ${config.apiVersion} ExecCredential`,
    );
  }
  const { token, clientCertificateData, clientKeyData, expirationTimestamp } = parsed.status ?? {};
  if ((clientCertificateData === undefined) !== (clientKeyData === undefined)) {
    throw new Error(`${what}: clientCertificateData and clientKeyData must come together`);
  }
  if (token === undefined && clientCertificateData === undefined) {
    throw new Error(`${what}: gave neither a token nor a certificate`);
  }
  const pair =
    clientCertificateData === undefined ? {} : { pair: { certificate: clientCertificateData, key: clientKeyData! } };
  return { token, ...pair, expiresMs: expiryMs(expirationTimestamp, what) };
}

function expiryMs(timestamp: string | undefined, what: string): number {
  if (timestamp === undefined) return Number.POSITIVE_INFINITY;
  const atMs = Date.parse(timestamp);
  if (Number.isNaN(atMs)) throw new Error(`${what}: expirationTimestamp is not a time: ${timestamp}`);
  return atMs - expiryMarginMs;
}

function lastLines(text: string): string {
  return text.trim().split('\n').slice(-3).join(' / ') || 'no output';
}
