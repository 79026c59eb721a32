// A broker and homes in this process, with real TLS, disks and rights; agents as processes of their own that know their
// homes only by a kubeconfig with the rights of deploy/manifests/agent.yaml; commands as a person types them.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { stringify } from 'yaml';
import { silentLog } from '../../src/base/log.ts';
import { createRealHost } from '../../src/base/real/host.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import { addClusterSetCommands } from '../../src/cli/clusterset/index.ts';
import { addRegisterCommands } from '../../src/cli/register/register.ts';
import { agentAccountName, homeObjects, serviceWriterObjects } from '../../src/clusterset/membership/home-objects.ts';
import { requestToken } from '../../src/kube/client/account-token.ts';
import { install } from '../../src/kube/client/apply.ts';
import { type Client, createClient } from '../../src/kube/client/client.ts';
import { findHome } from '../../src/kube/client/kubeconfig.ts';
import { namespaceType } from '../../src/kube/objects/namespace.ts';
import type { AnyObject, ResourceType } from '../../src/kube/objects/object.ts';
import { systemNamespace } from '../../src/kube/objects/ours.ts';
import { type Home, startHome } from '../../src/main/home/part.ts';

const portolan = fileURLToPath(new URL('../../bin/portolan', import.meta.url));
const world = createRealWorld();

export interface TestHome {
  readonly name: string;
  readonly server: string;
  readonly kubeconfig: string;
  /** The admin's, over TLS. */
  readonly client: Client;
  stop(): Promise<void>;
}

export interface AgentProcess {
  readonly pid: number;
  readonly admin: string;
  log(): string;
  /** Resolves with the exit code; null after a signal that cannot be caught. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export interface Typed {
  readonly lines: string[];
  readonly exitCode: number;
}

export class TestClusterSet {
  readonly #directory = mkdtempSync(joinPath(tmpdir(), 'portolan-set-'));
  readonly #homes: Home[] = [];
  readonly #clients: Client[] = [];
  readonly #agents = new Set<AgentProcess>();

  /** The port of a home that was stopped, where others still look for it. */
  async startHome(name: string, port = 0): Promise<TestHome> {
    const directory = this.folderOf(name);
    const home = await startHome({ world, log: silentLog, directory, listen: { host: '127.0.0.1', port } });
    this.#homes.push(home);
    const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig: home.kubeconfig });
    const client = this.clientAt(access);
    return { name, server: home.server, kubeconfig: home.kubeconfig, client, stop: () => home.stop() };
  }

  folderOf(name: string): string {
    return joinPath(this.#directory, name);
  }

  clientAt(access: Parameters<typeof world.network.http>[0]): Client {
    const client = createClient(world.network.http(access), { world, userAgent: 'test' });
    this.#clients.push(client);
    return client;
  }

  /** With the rights of deploy/manifests/agent.yaml and services.yaml, and no more. */
  async agentKubeconfig({ name, server, client, kubeconfig }: TestHome): Promise<string> {
    for (const manifest of [...homeObjects(), ...serviceWriterObjects()]) await install(client, manifest);
    const account = { namespace: systemNamespace, name: agentAccountName };
    const { token } = await requestToken(client, { ...account, lifetimeMs: 3_600_000 });
    const { certificateAuthority = '' } = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig });
    const path = joinPath(this.#directory, `${name}-agent.kubeconfig`);
    const ca = Buffer.from(certificateAuthority).toString('base64');
    writeFileSync(
      path,
      stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [{ name: 'home', cluster: { server, 'certificate-authority-data': ca } }],
        users: [{ name: 'agent', user: { token } }],
        contexts: [{ name: 'home', context: { cluster: 'home', user: 'agent' } }],
        'current-context': 'home',
      }),
    );
    return path;
  }

  /** `program` is that of another release, if given. */
  async startAgent(kubeconfig: string, args: readonly string[] = [], program = portolan): Promise<AgentProcess> {
    const child = spawn(program, ['agent', '--kubeconfig', kubeconfig, '--log-level', 'info', ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const agent = await agentOf(child);
    this.#agents.add(agent);
    return agent;
  }

  /** A file in the folder of this set. */
  write(name: string, text: string): string {
    const path = joinPath(this.#directory, name);
    writeFileSync(path, text);
    return path;
  }

  async stop(): Promise<void> {
    await Promise.all(Array.from(this.#agents, (agent) => agent.stop('SIGKILL')));
    for (const client of this.#clients) client.close();
    for (const home of this.#homes.reverse()) await home.stop();
    rmSync(this.#directory, { recursive: true });
  }
}

function agentOf(child: ChildProcess): Promise<AgentProcess> {
  let out = '';
  let log = '';
  child.stderr!.on('data', (chunk) => {
    log += chunk;
  });
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`portolan agent ended with ${code}: ${out}${log}`)));
    child.stdout!.on('data', (chunk) => {
      out += chunk;
      const admin = /^admin (\S+)$/m.exec(out)?.[1];
      if (admin === undefined) return;
      resolve({
        pid: child.pid!,
        admin,
        log: () => log,
        stop: async (signal = 'SIGTERM') => {
          if (child.exitCode === null && child.signalCode === null) child.kill(signal);
          return exited;
        },
      });
    });
  });
}

/** Runs a command in this process. Words are separated by single spaces. */
export async function type(words: string | readonly string[]): Promise<Typed> {
  const lines: string[] = [];
  let exitCode = 0;
  const program = new Command().exitOverride();
  const hands = { world, host: createRealHost(), print: (text: string) => void lines.push(text) };
  addRegisterCommands(program, hands);
  addClusterSetCommands(program, {
    ...hands,
    setExitCode: (code) => {
      exitCode = code;
    },
  });
  await program.parseAsync(typeof words === 'string' ? words.split(' ') : [...words], { from: 'user' });
  return { lines, exitCode };
}

export async function until(what: string, condition: () => Promise<boolean> | boolean): Promise<void> {
  for (let round = 0; round < 900; round += 1) {
    if (await condition()) return;
    await pause(100);
  }
  throw new Error(`after 90 s still not: ${what}`);
}

/** Kinds that change all the time by themselves; quotas count leases too. */
const renewed = new Set(['heartbeats', 'leases', 'livenessreports', 'resourcequotas']);

/** `kind namespace/name` to resourceVersion of everything in a home, leases aside. */
export async function everything(client: Client): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const type of await listableTypes(client)) {
    if (renewed.has(type.plural)) continue;
    for await (const page of client.listPaged<AnyObject>(type)) {
      for (const { metadata } of page.items) {
        found.set(`${type.kind} ${metadata.namespace ?? ''}/${metadata.name}`, metadata.resourceVersion ?? '');
      }
    }
  }
  return found;
}

interface Resource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
}

async function listableTypes(client: Client): Promise<ResourceType[]> {
  const { groups } = await client.getPath<{ groups: { name: string; preferredVersion: { version: string } }[] }>(
    '/apis',
  );
  const places = [
    { group: '', version: 'v1' },
    ...groups.map((one) => ({ group: one.name, version: one.preferredVersion.version })),
  ];
  const types: ResourceType[] = [];
  for (const { group, version } of places) {
    const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
    const { resources } = await client.getPath<{ resources: Resource[] }>(path);
    for (const { name, kind, namespaced, verbs } of resources) {
      if (!verbs.includes('list') || name.includes('/')) continue;
      types.push({ group, version, plural: name, kind, isNamespaced: namespaced });
    }
  }
  return types;
}

export async function makeNamespace(client: Client, name: string): Promise<void> {
  await client.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
}
