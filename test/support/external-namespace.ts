// A network namespace with the world outside in it, an Envoy that external services configure, and the redirects that lead
// connections to it. Needs root.

import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { MeshExternalService } from '../../src/external/kinds/mesh-external-service.ts';
import type { Plugins } from '../../src/external/plugins/plugin.ts';
import { type Redirect, redirectsOf } from '../../src/external/rules/redirects.ts';
import { tablesOf } from '../../src/external/rules/tables.ts';
import { createAuthority } from '../../src/external/testing/pem.ts';
import { redirectElements } from '../../src/proxy/nft/redirects.ts';
import { Ruleset } from '../../src/proxy/nft/ruleset.ts';
import { differenceScript, refillScript } from '../../src/proxy/nft/script.ts';
import { externalResources, rulesInForce } from '../../src/xds/external/generate.ts';
import { testInput } from '../../src/xds/external/testing/agreement.ts';
import { testCredentials } from './aws-signature.ts';
import { pathOf } from './counterparts.ts';
import { type RunningEnvoy, startEnvoy } from './envoy.ts';
import type { Order } from './external-world.ts';

export interface ExternalNamespace {
  readonly directory: string;
  readonly ca: string;
  readonly socket: string;
  readonly envoy: RunningEnvoy;
  ask(order: Order): Promise<string>;
  apply(services: readonly MeshExternalService[]): Promise<void>;
  stop(): Promise<void>;
}

export interface NamespaceOptions {
  readonly services: (files: {
    readonly ca: string;
    readonly caFile: string;
    readonly socket: string;
    readonly client: { certificate: string; key: string };
  }) => readonly MeshExternalService[];
  readonly plugins?: Plugins;
}

const envoyUid = 1337;
const ip = pathOf('ip') ?? 'ip';
const serverHosts = {
  api: ['api.example.test'],
  wild: ['one.wild.test', '*.wild.test'],
  backend: ['backend.test', '10.50.0.6'],
  lambda: ['lambda.test'],
};
const names = '10.50.0.6 backend.test\n10.50.0.6 wrong.test\n10.50.0.9 lambda.test\n127.0.0.1 localhost\n';

export async function startExternalNamespace(options: NamespaceOptions): Promise<ExternalNamespace> {
  const name = `pext${process.pid}`;
  const directory = mkdtempSync(join(tmpdir(), 'portolan-external-'));
  chmodSync(directory, 0o777);
  const authority = createAuthority();
  const client = authority.issue({ kind: 'client' });
  for (const [file, hosts] of Object.entries(serverHosts)) {
    const pair = authority.issue({ kind: 'server', hosts });
    writeFileSync(join(directory, `${file}.pem`), pair.certificate);
    writeFileSync(join(directory, `${file}.key`), pair.key);
  }
  const caFile = join(directory, 'ca.pem');
  writeFileSync(caFile, authority.certificate, { mode: 0o644 });
  const socket = join(directory, 'app.sock');
  mkdirSync(`/etc/netns/${name}`, { recursive: true });
  writeFileSync(`/etc/netns/${name}/hosts`, names);
  // The CAs that the system of this namespace trusts.
  mkdirSync(`/etc/netns/${name}/ssl/certs`, { recursive: true });
  writeFileSync(`/etc/netns/${name}/ssl/certs/ca-certificates.crt`, authority.certificate);
  writeFileSync(`/etc/netns/${name}/resolv.conf`, 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n');
  const inside = (...command: string[]) => execFileSync(ip, ['netns', 'exec', name, ...command]);
  execFileSync(ip, ['netns', 'add', name]);
  inside('ip', 'link', 'set', 'lo', 'up');
  for (const range of ['10.50.0.0/24', '10.60.0.0/24', '242.0.0.0/8'])
    inside('ip', 'route', 'add', 'local', range, 'dev', 'lo');
  const task = { ca: authority.certificate, pairs: directory, socket };
  const world = spawn(ip, [
    'netns',
    'exec',
    name,
    process.execPath,
    new URL('./external-world.ts', import.meta.url).pathname,
    JSON.stringify(task),
  ]);
  const { ask, ready } = conversation(world);
  await ready;
  chmodSync(socket, 0o777);
  const redirects = new Redirects(name);
  const generate = (services: readonly MeshExternalService[]) => {
    const input = { ...testInput, ...(options.plugins === undefined ? {} : { plugins: options.plugins }), services };
    redirects.apply(redirectsOf(tablesOf(rulesInForce(input)), testInput.ports));
    return externalResources(input);
  };
  const envoy = await startEnvoy({
    directory: join(directory, 'envoy'),
    resources: generate(options.services({ ca: authority.certificate, caFile, socket, client })),
    prefix: [ip, 'netns', 'exec', name],
    uid: envoyUid,
    env: { AWS_ACCESS_KEY_ID: testCredentials.accessKey, AWS_SECRET_ACCESS_KEY: testCredentials.secretKey },
  });
  return {
    directory,
    ca: authority.certificate,
    socket,
    envoy,
    ask,
    apply: (services) => envoy.apply(generate(services)),
    stop: async () => {
      await envoy.stop();
      world.kill('SIGKILL');
      execFileSync(ip, ['netns', 'delete', name]);
      rmSync(`/etc/netns/${name}`, { recursive: true, force: true });
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** The table of the node's proxy, with nothing in it but redirects. */
class Redirects {
  readonly #namespace: string;
  readonly #ruleset = new Ruleset();
  #isLoaded = false;

  constructor(namespace: string) {
    this.#namespace = namespace;
  }

  apply(redirects: readonly Redirect[]): void {
    const difference = this.#ruleset.setRedirects(redirectElements(redirects));
    const table = { ranges: [], redirectExceptUid: envoyUid };
    const input = this.#isLoaded ? differenceScript(difference) : refillScript(this.#ruleset, table, undefined);
    this.#isLoaded = true;
    execFileSync(ip, ['netns', 'exec', this.#namespace, 'nft', '-f', '-'], { input });
  }
}

function conversation(world: ChildProcessWithoutNullStreams) {
  const waiting = new Map<number, (answer: string) => void>();
  let last = 0;
  let errors = '';
  world.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const ready = new Promise<void>((resolve, reject) => {
    world.once('exit', () => reject(new Error(`the world ended: ${errors}`)));
    createInterface({ input: world.stdout }).on('line', (line) => {
      const said = JSON.parse(line) as 'ready' | { id: number; answer: string };
      if (said === 'ready') return resolve();
      waiting.get(said.id)?.(said.answer);
      waiting.delete(said.id);
    });
  });
  const ask = (order: Order) =>
    new Promise<string>((resolve) => {
      last += 1;
      waiting.set(last, resolve);
      world.stdin.write(`${JSON.stringify({ id: last, order })}\n`);
    });
  return { ask, ready };
}
