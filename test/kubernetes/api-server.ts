// A real Kubernetes API server with its etcd and, where the binary is there, its controller manager, from the binaries in
// KUBEBUILDER_ASSETS, on free ports of this machine.

import { type ChildProcess, execFileSync } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../support/free-port.ts';
import { spawnTied } from '../support/tied-process.ts';

const assets = process.env['KUBEBUILDER_ASSETS'] ?? '';

/** Deletes namespaces with their content, collects garbage, counts quotas and writes EndpointSlices. */
export const hasControllerManager: boolean = existsSync(join(assets, 'kube-controller-manager'));

const controllers = [
  'namespace-controller',
  'garbage-collector-controller',
  'serviceaccount-controller',
  'serviceaccount-token-controller',
  'endpointslice-controller',
  'resourcequota-controller',
];

export function kubectlWith(kubeconfig: string, args: readonly string[], input = ''): string {
  return execFileSync(join(assets, 'kubectl'), ['--kubeconfig', kubeconfig, ...args], {
    encoding: 'utf8',
    input,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

export interface ApiServerOptions {
  /** Further flags of kube-apiserver. */
  readonly args?: readonly string[];
}

export class KubernetesApiServer {
  readonly #directory = mkdtempSync(join(tmpdir(), 'portolan-kubernetes-'));
  readonly #children: ChildProcess[] = [];
  readonly kubeconfig = join(this.#directory, 'admin.kubeconfig');
  readonly auditLog = join(this.#directory, 'audit.log');
  server = '';
  /** In PEM. */
  authority = '';
  #etcd = '';

  static async start(options: ApiServerOptions = {}): Promise<KubernetesApiServer> {
    const missing = ['kube-apiserver', 'etcd', 'kubectl'].filter((name) => !existsSync(join(assets, name)));
    if (missing.length > 0) throw new Error(`KUBEBUILDER_ASSETS ${assets}: ${missing.join(', ')} not there`);
    const started = new KubernetesApiServer();
    try {
      await started.#start(options);
    } catch (error) {
      await started.stop();
      throw error;
    }
    return started;
  }

  kubectl(...args: string[]): string {
    return kubectlWith(this.kubeconfig, args);
  }

  /** As it lies in etcd. */
  async stored(key: string): Promise<string> {
    const body = JSON.stringify({ key: Buffer.from(key).toString('base64') });
    const answer = await fetch(`${this.#etcd}/v3/kv/range`, { method: 'POST', body });
    const { kvs = [] } = (await answer.json()) as { kvs?: { value: string }[] };
    return Buffer.from(kvs[0]?.value ?? '', 'base64').toString();
  }

  async stop(): Promise<void> {
    for (const child of this.#children.reverse()) {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      if (child.exitCode === null && child.signalCode === null && child.kill('SIGKILL')) await gone;
    }
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #start({ args = [] }: ApiServerOptions): Promise<void> {
    const [client, peer, secure] = [await freePort(), await freePort(), await freePort()];
    const etcd = `http://127.0.0.1:${client}`;
    this.#etcd = etcd;
    this.#run('etcd', [
      ...['--data-dir', join(this.#directory, 'etcd'), '--listen-client-urls', etcd, '--advertise-client-urls', etcd],
      ...['--listen-peer-urls', `http://127.0.0.1:${peer}`, '--log-level', 'error', '--unsafe-no-fsync'],
    ]);
    const key = join(this.#directory, 'accounts.key');
    execFileSync('openssl', ['genrsa', '-out', key, '2048'], { stdio: 'ignore' });
    this.#run('kube-apiserver', [
      ...['--etcd-servers', etcd, '--secure-port', String(secure), '--bind-address', '127.0.0.1'],
      // Would be that of the default route, which a machine without a network lacks. Nobody connects to it.
      ...['--advertise-address', '192.0.2.1'],
      ...['--cert-dir', join(this.#directory, 'certs'), '--service-account-key-file', key],
      ...['--service-account-signing-key-file', key, '--service-account-issuer', 'https://kubernetes.default.svc'],
      ...['--token-auth-file', this.#write('tokens.csv', 'admin-token,admin,admin,system:masters\n')],
      ...['--authorization-mode', 'RBAC', '--service-cluster-ip-range', '10.0.0.0/24'],
      ...['--audit-policy-file', this.#write('audit.yaml', auditPolicy), '--audit-log-path', this.auditLog],
      // Pods need no account here; accounts of parts are asked for tokens.
      ...['--disable-admission-plugins', 'ServiceAccount'],
      // Lets only those block the deletion of an owner who may write its finalizers.
      ...['--enable-admission-plugins', 'OwnerReferencesPermissionEnforcement', ...args],
    ]);
    this.server = `https://127.0.0.1:${secure}`;
    const certificate = join(this.#directory, 'certs/apiserver.crt');
    for (let tries = 0; !existsSync(certificate); tries++) {
      if (this.#children.some(({ exitCode }) => exitCode !== null) || tries > 240) throw new Error(this.#lastWords());
      await pause(250);
    }
    this.authority = readFileSync(certificate, 'utf8');
    writeFileSync(this.kubeconfig, kubeconfigText(this, 'admin-token'));
    await this.#untilReady();
    if (hasControllerManager) {
      this.#run('kube-controller-manager', [
        ...['--kubeconfig', this.kubeconfig, '--controllers', controllers.join(), '--leader-elect=false'],
        ...['--service-account-private-key-file', key, '--secure-port', '0'],
        // Without credentials of each controller's own: the audit log of parts is all that is read here.
        ...['--use-service-account-credentials=false', '--resource-quota-sync-period=2s'],
      ]);
    }
  }

  async #untilReady(): Promise<void> {
    for (let tries = 0; ; tries++) {
      try {
        if (this.kubectl('get', '--raw', '/readyz') === 'ok') return;
      } catch (error) {
        if (tries > 120) throw error;
      }
      await pause(500);
    }
  }

  #write(name: string, text: string): string {
    const path = join(this.#directory, name);
    writeFileSync(path, text);
    return path;
  }

  #run(program: string, args: readonly string[]): void {
    const log = openSync(join(this.#directory, `${program}.log`), 'a');
    this.#children.push(spawnTied(join(assets, program), args, { stdio: ['ignore', log, log] }));
    closeSync(log);
  }

  #lastWords(): string {
    const logs = ['etcd', 'kube-apiserver'].map((program) => join(this.#directory, `${program}.log`));
    const words = logs.map((path) => (existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n').at(-1) : ''));
    return `the API server did not start: ${words.filter(Boolean).join('; ')}`;
  }
}

const auditPolicy =
  'apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n';

export interface Access {
  readonly server: string;
  /** In PEM. */
  readonly authority: string;
}

export function kubeconfigText({ server, authority }: Access, token: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'k', cluster: { server, 'certificate-authority-data': Buffer.from(authority).toString('base64') } },
    ],
    users: [{ name: 'k', user: { token } }],
    contexts: [{ name: 'k', context: { cluster: 'k', user: 'k' } }],
    'current-context': 'k',
  });
}
