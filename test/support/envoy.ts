// A real Envoy for tests: checks a configuration, or runs one that takes listeners, clusters, routes and secrets from files,
// so that they can be changed while it runs. Needs no discovery server.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { JsonObject } from '../../src/base/json.ts';
import { serverCluster } from '../../src/xds/identity/bootstrap.ts';
import type { XdsResource, XdsType } from '../../src/xds/resource.ts';
import { pathOf } from './counterparts.ts';

const run = promisify(execFile);

const typeUrls: Readonly<Record<XdsType, string>> = {
  cluster: 'envoy.config.cluster.v3.Cluster',
  endpoints: 'envoy.config.endpoint.v3.ClusterLoadAssignment',
  listener: 'envoy.config.listener.v3.Listener',
  route: 'envoy.config.route.v3.RouteConfiguration',
  'virtual-host': 'envoy.config.route.v3.VirtualHost',
  secret: 'envoy.extensions.transport_sockets.tls.v3.Secret',
};

/** What bootstraps name the discovery server by, which takes access logs; here it takes none. */
const logServer = { name: serverCluster, type: 'STATIC', connect_timeout: '1s' };

/**
 * Envoy's complaints about the resources, empty if there are none: routes and secrets become part of what refers to
 * them.
 */
export async function validateByEnvoy(directory: string, resources: readonly XdsResource[]): Promise<string> {
  const bodies = (type: XdsType) => resources.filter((one) => one.type === type).map(({ body }) => body);
  const routes = new Map(bodies('route').map((body) => [body['name'], body]));
  const inlined = (body: JsonObject) => replaceSources(body, (field, value) => staticSource(field, value, routes));
  const config = {
    static_resources: {
      listeners: bodies('listener').map(inlined),
      clusters: [...bodies('cluster').map(inlined), logServer],
      secrets: bodies('secret'),
    },
  };
  const file = join(directory, 'validate.json');
  writeFileSync(file, JSON.stringify(config));
  try {
    await run(pathOf('envoy')!, ['--mode', 'validate', '-c', file, '--log-level', 'error'], { maxBuffer: 64 << 20 });
    return '';
  } catch (error) {
    return String((error as { stderr?: string }).stderr || error);
  }
}

function staticSource(field: string, value: JsonObject, routes: ReadonlyMap<unknown, JsonObject>): [string, unknown] {
  if (field === 'rds') return ['route_config', routes.get(value['route_config_name'])];
  return [field, { name: value['name'] }];
}

export interface EnvoyOptions {
  readonly directory: string;
  readonly resources: readonly XdsResource[];
  /** In front of the command, such as `ip netns exec x`. */
  readonly prefix?: readonly string[];
  readonly uid?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly concurrency?: number;
}

export interface RunningEnvoy {
  /** Replaces all resources; those that are the same change nothing. */
  apply(resources: readonly XdsResource[]): Promise<void>;
  /** A path of the admin endpoint, such as `/stats`. */
  admin(path: string): Promise<string>;
  readonly log: () => string;
  stop(): Promise<void>;
}

export async function startEnvoy(options: EnvoyOptions): Promise<RunningEnvoy> {
  const { directory, prefix = [], uid, env = {} } = options;
  mkdirSync(directory, { recursive: true });
  chmodSync(directory, 0o777);
  const socket = join(directory, 'admin.sock');
  let applied = 0;
  const write = (file: string, resources: readonly XdsResource[], version: number) => {
    const found = resources.map(({ type, body }) => ({
      '@type': `type.googleapis.com/${typeUrls[type]}`,
      ...replaceSources(body, (field, value) => [field, fileSource(directory, field, value)]),
    }));
    const path = join(directory, file);
    writeFileSync(`${path}.new`, JSON.stringify({ version_info: String(version), resources: found }), { mode: 0o644 });
    renameSync(`${path}.new`, path);
  };
  const writeAll = (resources: readonly XdsResource[]) => {
    applied += 1;
    // Referred resources come first. Envoy takes one route configuration or secret from a file.
    for (const one of resources)
      if (one.type === 'secret' || one.type === 'route') write(singleFile(one.type, one.name), [one], applied);
    for (const type of ['cluster', 'listener'] as const)
      write(
        `${type}.json`,
        resources.filter((one) => one.type === type),
        applied,
      );
  };
  writeAll(options.resources);
  const bootstrap = {
    node: { id: 'test', cluster: 'test' },
    static_resources: { clusters: [logServer] },
    admin: { address: { pipe: { path: socket, mode: 0o666 } } },
    dynamic_resources: {
      lds_config: sourceOf(directory, 'listener.json'),
      cds_config: sourceOf(directory, 'cluster.json'),
    },
  };
  const config = join(directory, 'bootstrap.json');
  writeFileSync(config, JSON.stringify(bootstrap), { mode: 0o644 });
  const args = [
    '-c',
    config,
    '--concurrency',
    String(options.concurrency ?? 1),
    '--log-level',
    'warning',
    '--drain-time-s',
    '1',
  ];
  const as = uid === undefined ? [] : ['setpriv', '--reuid', String(uid), '--clear-groups', '--'];
  const [command = '', ...rest] = [...prefix, ...as, pathOf('envoy')!, ...args, '--use-dynamic-base-id'];
  const child = spawn(command, rest, { env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-20_000)));
  const admin = (path: string) => get(socket, path);
  const until = async (what: string, isDone: (stats: string) => boolean) => {
    for (let attempt = 0; attempt < 200; attempt += 1) {
      if (child.exitCode !== null) throw new Error(`envoy ended: ${log}`);
      const stats = await admin('/stats?filter=(version_text|update_rejected|server.state)').catch(() => '');
      if (/(lds|cds)\.update_rejected: [1-9]/.test(stats)) throw new Error(`envoy refused: ${log}`);
      if (isDone(stats)) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`envoy: waited in vain for ${what}: ${log}`);
  };
  const isAt = (version: number) => (stats: string) =>
    stats.includes('server.state: 0') && stats.includes(`listener_manager.lds.version_text: "${version}"`);
  await until('start', isAt(applied));
  return {
    admin,
    log: () => log,
    apply: async (resources) => {
      writeAll(resources);
      await until('update', isAt(applied));
    },
    stop: () => stop(child),
  };
}

function get(socketPath: string, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path, timeout: 5000, agent: false }, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += chunk));
      response.on('end', () => resolve(text));
    });
    asked.on('timeout', () => asked.destroy(new Error('timeout')));
    asked.on('error', reject);
    asked.end();
  });
}

function stop(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}

function singleFile(type: XdsType, name: string): string {
  return `${type}-${Buffer.from(name).toString('base64url')}.json`;
}

function sourceOf(directory: string, file: string): JsonObject {
  return { path_config_source: { path: join(directory, file) }, resource_api_version: 'V3' };
}

function fileSource(directory: string, field: string, value: JsonObject): JsonObject {
  if (field !== 'rds')
    return { ...value, sds_config: sourceOf(directory, singleFile('secret', String(value['name']))) };
  const file = singleFile('route', String(value['route_config_name']));
  return { ...value, config_source: sourceOf(directory, file) };
}

const referring = ['rds', 'validation_context_sds_secret_config', 'tls_certificate_sds_secret_configs'];

/** Every reference to a resource of its own, replaced. */
function replaceSources<T>(value: T, replace: (field: string, value: JsonObject) => [string, unknown]): T {
  if (Array.isArray(value)) return value.map((one) => replaceSources(one, replace)) as T;
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([field, inner]): [string, unknown] => {
    if (!referring.includes(field)) return [field, replaceSources(inner, replace)];
    if (!Array.isArray(inner)) return replace(field, inner as JsonObject);
    return [field, inner.map((one) => replace(field, one as JsonObject)[1])];
  });
  return Object.fromEntries(entries) as T;
}
