// A kubeconfig, or a Pod's service account, as the access to a home: where it is, whom to trust, who we are. Files and
// programs are read through the Host that is passed in. Everything that is wrong is said with the field it is in.

import type { Host } from '../base/host.ts';
import type { HttpAccess } from '../base/http.ts';
import type { Clock } from '../base/world.ts';
import { yaml } from '../base/yaml.ts';
import { createExecCredentials, type ExecConfig } from './exec-credentials.ts';
import { inClusterAccess } from './in-cluster.ts';

export interface HomeAccess extends HttpAccess {
  /** Where commands look that name no namespace. */
  readonly defaultNamespace: string;
  /** For people: the context's name, or `in-cluster`. */
  readonly contextName: string;
}

export interface KubeconfigOptions {
  readonly host: Host;
  readonly clock: Clock;
  /** The current one of the file when absent. */
  readonly context?: string;
  /** Where the file lies: paths in it are relative to its directory. */
  readonly path?: string;
}

export interface HomeOptions extends Omit<KubeconfigOptions, 'path'> {
  /** `--kubeconfig`; else the first file of $KUBECONFIG, else ~/.kube/config, else the Pod's service account. */
  readonly kubeconfig?: string;
}

interface Named {
  readonly name?: string;
}

interface Cluster {
  readonly server?: string;
  readonly 'certificate-authority'?: string;
  readonly 'certificate-authority-data'?: string;
  readonly 'insecure-skip-tls-verify'?: boolean;
  readonly 'tls-server-name'?: string;
  readonly 'proxy-url'?: string;
}

interface AuthInfo {
  readonly 'client-certificate'?: string;
  readonly 'client-certificate-data'?: string;
  readonly 'client-key'?: string;
  readonly 'client-key-data'?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly exec?: ExecConfig;
  readonly 'auth-provider'?: unknown;
  readonly username?: string;
}

interface Context {
  readonly cluster?: string;
  readonly user?: string;
  readonly namespace?: string;
}

interface Kubeconfig {
  readonly 'current-context'?: string;
  readonly clusters?: readonly (Named & { readonly cluster?: Cluster })[];
  readonly users?: readonly (Named & { readonly user?: AuthInfo })[];
  readonly contexts?: readonly (Named & { readonly context?: Context })[];
}

/** Finds the kubeconfig the way kubectl does, and falls back to the service account of the Pod we run in. */
export async function findHome(options: HomeOptions): Promise<HomeAccess> {
  const { host } = options;
  const asked = options.kubeconfig ?? host.environment['KUBECONFIG']?.split(':').find((path) => path !== '');
  const path = asked ?? `${host.environment['HOME'] ?? ''}/.kube/config`;
  const text = await host.readText(path);
  if (text !== undefined) return loadKubeconfig(text, { ...options, path });
  if (asked !== undefined) throw new Error(`kubeconfig ${path}: no such file`);
  const inCluster = await inClusterAccess(options);
  if (inCluster !== undefined) return inCluster;
  throw new Error(
    `no kubeconfig: ${path} does not exist and this is no Pod; give one with --kubeconfig or $KUBECONFIG`,
  );
}

export async function loadKubeconfig(text: string, options: KubeconfigOptions): Promise<HomeAccess> {
  const where = `kubeconfig${options.path === undefined ? '' : ` ${options.path}`}`;
  const config = parseConfig(text, where);
  const contextName = options.context ?? config['current-context'] ?? '';
  if (contextName === '') throw new Error(`${where}: current-context is not set; set it or name a context`);
  const context = find(config.contexts, contextName, `${where}: context`).context ?? {};
  const cluster =
    find(config.clusters, context.cluster, `${where}: cluster of context ${quote(contextName)}`).cluster ?? {};
  const user = context.user === undefined ? {} : (find(config.users, context.user, `${where}: user`).user ?? {});
  const reader = createFileReader(options, where);
  const access = await clusterAccess(cluster, `${where}: cluster ${quote(context.cluster)}`, reader);
  return {
    ...access,
    ...(await userAccess(user, { access, where: `${where}: user ${quote(context.user)}`, reader, options })),
    defaultNamespace: context.namespace ?? 'default',
    contextName,
  };
}

function parseConfig(text: string, where: string): Kubeconfig {
  try {
    const config: unknown = yaml().parse(text);
    if (typeof config === 'object' && config !== null && !Array.isArray(config)) return config as Kubeconfig;
  } catch (cause) {
    throw new Error(`${where}: not YAML`, { cause });
  }
  throw new Error(`${where}: not a kubeconfig`);
}

function find<T extends Named>(list: readonly T[] | undefined, name: string | undefined, what: string): T {
  const found = list?.find((entry) => entry.name === name);
  if (found !== undefined) return found;
  const known = (list ?? []).map((entry) => quote(entry.name)).join(', ') || 'none';
  throw new Error(`${what}: there is no ${quote(name)}; known: ${known}`);
}

type FileReader = (path: string, field: string) => Promise<string>;

function createFileReader(options: KubeconfigOptions, where: string): FileReader {
  const slash = options.path?.lastIndexOf('/') ?? -1;
  const directory = slash < 0 ? '' : options.path!.slice(0, slash + 1);
  return async (path, field) => {
    const full = path.startsWith('/') ? path : directory + path;
    const text = await options.host.readText(full);
    if (text === undefined) throw new Error(`${where}: ${field}: no such file: ${full}`);
    return text;
  };
}

async function clusterAccess(cluster: Cluster, where: string, read: FileReader): Promise<HttpAccess> {
  if (!cluster.server) throw new Error(`${where}: server is not set`);
  if (!URL.canParse(cluster.server)) throw new Error(`${where}: server is not a URL: ${cluster.server}`);
  if (cluster['proxy-url']) {
    throw new Error(`${where}: proxy-url is not supported; reach the server directly or through a tunnel`);
  }
  return {
    server: cluster.server.replace(/\/+$/, ''),
    certificateAuthority: await inlineOrFile(cluster, 'certificate-authority', where, read),
    serverName: cluster['tls-server-name'],
    insecureSkipVerify: cluster['insecure-skip-tls-verify'],
  };
}

interface UserContext {
  readonly access: HttpAccess;
  readonly where: string;
  readonly reader: FileReader;
  readonly options: KubeconfigOptions;
}

async function userAccess(user: AuthInfo, context: UserContext): Promise<Partial<HttpAccess>> {
  const { where, reader, options } = context;
  if (user['auth-provider'] !== undefined) {
    throw new Error(`${where}: auth-provider is not supported (Kubernetes removed it in 1.26); use exec instead`);
  }
  if (user.username !== undefined) {
    throw new Error(`${where}: username and password are not supported (Kubernetes removed them in 1.19)`);
  }
  const clientCertificate = await inlineOrFile(user, 'client-certificate', where, reader);
  const clientKey = await inlineOrFile(user, 'client-key', where, reader);
  if ((clientCertificate === undefined) !== (clientKey === undefined)) {
    throw new Error(`${where}: client-certificate and client-key must be given together`);
  }
  if (clientCertificate !== undefined) return { clientCertificate, clientKey };
  if (user.tokenFile !== undefined) {
    const { tokenFile } = user;
    // Read each time: whoever renews the token replaces the file.
    return { bearerToken: async () => (await reader(tokenFile, 'tokenFile')).trim() };
  }
  if (user.token !== undefined) {
    const { token } = user;
    return { bearerToken: async () => token };
  }
  if (user.exec !== undefined) return createExecCredentials(user.exec, { ...options, where, access: context.access });
  return {};
}

/** `<field>-data` in base64 wins over `<field>`, a path, as in kubectl. */
async function inlineOrFile(
  section: object,
  field: string,
  where: string,
  read: FileReader,
): Promise<string | undefined> {
  const fields = section as Record<string, string | undefined>;
  const data = fields[`${field}-data`];
  if (data) return decodePem(data, `${where}: ${field}-data`);
  const path = fields[field];
  return path ? read(path, field) : undefined;
}

function decodePem(data: string, where: string): string {
  const text = Buffer.from(data, 'base64').toString('utf8');
  if (!text.includes('-----BEGIN ')) throw new Error(`${where}: not PEM in base64`);
  return text;
}

function quote(name: string | undefined): string {
  return JSON.stringify(name ?? '');
}
