// A kubeconfig, or a Pod's service account, as the access to a home: where it is, whom to trust, who we are. Files
// and programs are read through the Host that is passed in. Every error names its field.

import type { Host } from '../../base/host.ts';
import type { HttpAccess } from '../../base/http.ts';
import { formatHostPort } from '../../base/net/host-port.ts';
import type { Clock } from '../../base/world.ts';
import { yaml } from '../../base/yaml.ts';
import { createExecCredentials, type ExecConfig } from './exec-credentials.ts';

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
  /** `--kubeconfig`; else the files of $KUBECONFIG together, else ~/.kube/config, else the Pod's service account. */
  readonly kubeconfig?: string;
}

interface Named {
  readonly name?: string;
}

/** A kubeconfig's text, and where it lies: paths in it are relative to its directory. */
interface Source {
  readonly text: string;
  readonly path: string | undefined;
}

/** An entry that knows which file it is from. */
type Placed<T> = T & { readonly path: string | undefined };

interface Cluster {
  readonly server?: string;
  readonly 'certificate-authority'?: string;
  readonly 'certificate-authority-data'?: string;
  readonly 'insecure-skip-tls-verify'?: boolean;
  readonly 'tls-server-name'?: string;
  readonly 'proxy-url'?: string;
  readonly extensions?: readonly (Named & { readonly extension?: unknown })[] | null;
}

/** Clients that do not know it use `server` alone. */
export const serversExtension = 'portolan.dev/servers';

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
  readonly clusters?: readonly ClusterEntry[];
  readonly users?: readonly UserEntry[];
  readonly contexts?: readonly ContextEntry[];
}

type ClusterEntry = Named & { readonly cluster?: Cluster };
type UserEntry = Named & { readonly user?: AuthInfo };
type ContextEntry = Named & { readonly context?: Context };

/** A kubeconfig that is missing or wrong. */
class KubeconfigError extends Error {
  override readonly name = 'KubeconfigError';
}

/** No home was named, and none is found in the usual places. */
export class NoHome extends KubeconfigError {}

/** Finds the kubeconfig the way kubectl does, and falls back to the service account of the Pod we run in. */
export async function findHome(options: HomeOptions): Promise<HomeAccess> {
  const sources = await readSources(options);
  // A home that was started anew may have another port, and writes it to its kubeconfig.
  const currentServers = async () => {
    const now = await readSources(options);
    if (now.length === 0) return undefined;
    const { server, otherServers = [] } = await accessFrom(now, options);
    return [server, ...otherServers];
  };
  if (sources.length > 0) return { ...(await accessFrom(sources, options)), currentServers };
  const asked = askedPaths(options);
  if (asked.length > 0) throw new KubeconfigError(`kubeconfig ${asked.join(', ')}: no such file`);
  const inCluster = await inClusterAccess(options);
  if (inCluster !== undefined) return inCluster;
  throw new NoHome(
    `no kubeconfig: ${usualPath(options.host)} does not exist and this is no Pod; give one with --kubeconfig or $KUBECONFIG`,
  );
}

async function readSources(options: HomeOptions): Promise<Source[]> {
  const asked = askedPaths(options);
  const sources: Source[] = [];
  for (const path of asked.length > 0 ? asked : [usualPath(options.host)]) {
    const text = await options.host.readText(path);
    if (text !== undefined) sources.push({ text, path });
  }
  return sources;
}

function usualPath(host: Host): string {
  return `${host.environment['HOME'] ?? ''}/.kube/config`;
}

/** Names of all contexts in the usual files. */
export async function contextNames(host: HomeOptions['host']): Promise<string[]> {
  const asked = (host.environment['KUBECONFIG'] ?? '').split(':').filter((path) => path !== '');
  const names: string[] = [];
  for (const path of asked.length > 0 ? asked : [usualPath(host)]) {
    const text = await host.readText(path);
    if (text !== undefined) names.push(...(parseConfig({ text, path }).contexts ?? []).map(({ name }) => name ?? ''));
  }
  return names.filter((name) => name !== '');
}

function askedPaths({ kubeconfig, host }: HomeOptions): string[] {
  if (kubeconfig !== undefined) return [kubeconfig];
  return (host.environment['KUBECONFIG'] ?? '').split(':').filter((path) => path !== '');
}

export function loadKubeconfig(text: string, options: KubeconfigOptions): Promise<HomeAccess> {
  return accessFrom([{ text, path: options.path }], options);
}

/** If several files set a field, the first one counts, as in kubectl. */
async function accessFrom(sources: readonly Source[], options: Omit<KubeconfigOptions, 'path'>): Promise<HomeAccess> {
  const configs = sources.map((source) => ({ config: parseConfig(source), path: source.path }));
  const where = whereIs(sources.map(({ path }) => path ?? '').join(', '));
  const all = <T>(listOf: (config: Kubeconfig) => readonly T[] | undefined): Placed<T>[] =>
    configs.flatMap(({ config, path }) => (listOf(config) ?? []).map((entry) => ({ ...entry, path })));
  const contextName = options.context ?? configs.map(({ config }) => config['current-context']).find(Boolean) ?? '';
  if (contextName === '') throw new KubeconfigError(`${where}: current-context is not set; set it or name a context`);
  const contexts = all((config) => config.contexts);
  const context = find(contexts, contextName, `${where}: context`).context ?? {};
  const clusters = all((config) => config.clusters);
  const cluster = find(clusters, context.cluster, `${where}: cluster of context ${quote(contextName)}`);
  const users = all((config) => config.users);
  const user = context.user === undefined ? undefined : find(users, context.user, `${where}: user`);
  const access = await clusterAccess(
    cluster.cluster ?? {},
    `${whereIs(cluster.path)}: cluster ${quote(context.cluster)}`,
    createFileReader(cluster.path, options),
  );
  return {
    ...access,
    ...(await userAccess(user?.user ?? {}, {
      access,
      where: `${whereIs(user?.path)}: user ${quote(context.user)}`,
      reader: createFileReader(user?.path, options),
      options,
    })),
    defaultNamespace: context.namespace ?? 'default',
    contextName,
  };
}

function whereIs(path: string | undefined): string {
  return path ? `kubeconfig ${path}` : 'kubeconfig';
}

function parseConfig({ text, path }: Source): Kubeconfig {
  try {
    const config: unknown = yaml().parse(text);
    if (typeof config === 'object' && config !== null && !Array.isArray(config)) return config as Kubeconfig;
  } catch (cause) {
    throw new KubeconfigError(`${whereIs(path)}: not YAML`, { cause });
  }
  throw new KubeconfigError(`${whereIs(path)}: not a kubeconfig`);
}

function find<T extends Named>(list: readonly T[] | undefined, name: string | undefined, what: string): T {
  const found = list?.find((entry) => entry.name === name);
  if (found !== undefined) return found;
  const known = (list ?? []).map((entry) => quote(entry.name)).join(', ') || 'none';
  throw new KubeconfigError(`${what}: there is no ${quote(name)}; known: ${known}`);
}

type FileReader = (path: string, field: string) => Promise<string>;

function createFileReader(from: string | undefined, { host }: Pick<KubeconfigOptions, 'host'>): FileReader {
  const directory = (from ?? '').replace(/[^/]*$/, '');
  return async (path, field) => {
    const full = path.startsWith('/') ? path : directory + path;
    const text = await host.readText(full);
    if (text === undefined) throw new KubeconfigError(`${whereIs(from)}: ${field}: no such file: ${full}`);
    return text;
  };
}

async function clusterAccess(cluster: Cluster, where: string, read: FileReader): Promise<HttpAccess> {
  if (!cluster.server) throw new KubeconfigError(`${where}: server is not set`);
  if (!URL.canParse(cluster.server)) throw new KubeconfigError(`${where}: server is not a URL: ${cluster.server}`);
  if (cluster['proxy-url']) {
    throw new KubeconfigError(`${where}: proxy-url is not supported; reach the server directly or through a tunnel`);
  }
  const otherServers = otherServersOf(cluster, where);
  return {
    server: cluster.server.replace(/\/+$/, ''),
    ...(otherServers.length === 0 ? {} : { otherServers }),
    certificateAuthority: await inlineOrFile(cluster, 'certificate-authority', where, read),
    serverName: cluster['tls-server-name'],
    insecureSkipVerify: cluster['insecure-skip-tls-verify'],
  };
}

function otherServersOf({ extensions }: Cluster, where: string): string[] {
  const found = extensions?.find(({ name }) => name === serversExtension);
  if (found === undefined) return [];
  const { servers } = (found.extension ?? {}) as { servers?: unknown };
  const isList = Array.isArray(servers) && servers.every((one) => typeof one === 'string' && URL.canParse(one));
  if (!isList) throw new KubeconfigError(`${where}: extension ${serversExtension}: want servers, a list of URLs`);
  return servers.map((server: string) => server.replace(/\/+$/, ''));
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
    throw new KubeconfigError(
      `${where}: auth-provider is not supported (Kubernetes removed it in 1.26); use exec instead`,
    );
  }
  if (user.username !== undefined) {
    throw new KubeconfigError(`${where}: username and password are not supported (Kubernetes removed them in 1.19)`);
  }
  const clientCertificate = await inlineOrFile(user, 'client-certificate', where, reader);
  const clientKey = await inlineOrFile(user, 'client-key', where, reader);
  if ((clientCertificate === undefined) !== (clientKey === undefined)) {
    throw new KubeconfigError(`${where}: client-certificate and client-key must be given together`);
  }
  if (clientCertificate !== undefined) return { clientCertificate, clientKey };
  if (user.tokenFile !== undefined) {
    const { tokenFile } = user;
    // Read each time: a renewal replaces the file.
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
  if (!text.includes('-----BEGIN ')) throw new KubeconfigError(`${where}: not PEM in base64`);
  return text;
}

function quote(name: string | undefined): string {
  return JSON.stringify(name ?? '');
}

const directory = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Undefined if this is no Pod. */
async function inClusterAccess({ host }: { readonly host: Host }): Promise<HomeAccess | undefined> {
  const address = host.environment['KUBERNETES_SERVICE_HOST'];
  const port = host.environment['KUBERNETES_SERVICE_PORT'];
  if (!address || !port) return undefined;
  if ((await host.readText(`${directory}/token`)) === undefined) return undefined;
  return {
    server: `https://${formatHostPort(address, port)}`,
    certificateAuthority: await host.readText(`${directory}/ca.crt`),
    // Kubernetes replaces the file before the token in it runs out.
    bearerToken: async () => (await host.readText(`${directory}/token`))?.trim(),
    defaultNamespace: (await host.readText(`${directory}/namespace`))?.trim() ?? 'default',
    contextName: 'in-cluster',
  };
}
