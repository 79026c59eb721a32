// docs/quickstart/peering.md is typed as it stands there: two network namespaces stand for the companies, and a third runs a
// peer that shares no code with us.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { meshOf } from '../src/peering/testing/edge/mesh.ts';
import { pathOf } from './support/counterparts.ts';
import type { ForeignOwnerTask } from './support/foreign-owner-process.ts';
import { Namespaces, namespacesMissing, type Place } from './support/namespaces.ts';
import { type Step, stepsOf, Typist } from './support/quickstart.ts';

const steps = stepsOf('peering.md');
const sectionOf = (title: string) => steps.filter(({ section }) => section === title);
const ownerScript = fileURLToPath(new URL('support/foreign-owner-process.ts', import.meta.url));

const wanted = (['dig', 'curl', 'envoy', 'nft'] as const).filter((name) => pathOf(name) === undefined);
const missing = namespacesMissing() || (wanted.length === 0 ? '' : ` (needs ${wanted.join(', ')})`);
describe.skipIf(missing !== '')(`quick start: peering${missing}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-quickstart-'));
  const stops: (() => unknown)[] = [];
  let net: Namespaces;
  let acme: Place;
  let typist: Typist;

  beforeAll(() => {
    net = new Namespaces('qp');
    const [east, west] = [net.addMachine('east', 11), net.addMachine('west', 12)];
    acme = net.addMachine('acme', 13);
    const addresses = { '10.0.0.1': east.address, '10.0.0.2': west.address, '10.0.0.3': acme.address };
    const translate = (command: string) =>
      Object.entries(addresses).reduce((text, [from, to]) => text.replaceAll(from, to), command);
    const machines = [east, west].map((place, n) => ({ name: ['east', 'west'][n]!, within: net.within(place) }));
    typist = new Typist({ folder, machines, translate, tools: { envoy: pathOf('envoy')! } });
    // As machines have one; packets to the addresses of peers' services are redirected on their way to it.
    for (const place of [east, west]) net.ip(place, 'route add default dev eth0');
    const shop = `require('node:http').createServer((_, answer) => answer.end('checkout of east')).listen(8080, '${east.address}')`;
    const server = net.start(east, process.execPath, ['-e', shop]);
    stops.push(() => server.kill());
  });
  afterAll(async () => {
    await typist.stop();
    for (const stop of stops) await stop();
    net.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  const answered = (step: Step) =>
    expect.poll(async () => (await typist.type(step)).out, { timeout: 30_000, interval: 300 });
  /** The range of addresses of peers' services. */
  const virtualAddress = /^241\.\d+\.\d+\.\d+\n$/;

  test("a peer's service -> at most 6 commands, the last one gets an answer of the service", async () => {
    const typed = sectionOf('Share a service');
    expect(typed.length).toBeLessThanOrEqual(6);
    for (const step of typed.slice(0, -1)) await typist.done(step);
    expect(typed.at(-1)!.command).toMatch(/^curl /);
    await answered(typed.at(-1)!).toBe('checkout of east');
    const command = 'portolan peer services east --kubeconfig .portolan/admin.kubeconfig';
    const { out } = await typist.type({ machine: 'west', command, section: '' });
    expect(out).toContain('10.88.0.11:15443');
    expect(steps.filter(({ command: typedCommand }) => /openssl|--cert|--key/.test(typedCommand))).toEqual([]);
  });

  test('a foreign peer -> its service is resolved, after roots were exchanged', async () => {
    const [bundle, ...rest] = sectionOf('A peer that is not Portolan');
    expect(steps.length).toBeLessThan(10);
    await typist.done(bundle!);
    const mesh = meshOf('acme.example');
    writeFileSync(join(typist.folderOf('west'), 'acme-roots.pem'), mesh.certificate);
    const { certificate: cert, key } = mesh.issue();
    const ca = readFileSync(join(typist.folderOf('west'), 'west-roots.pem'), 'utf8');
    const endpoints = [{ address: '192.0.2.9', port: 443 }];
    const service = {
      id: 'db',
      fqdn: 'db.acme.example',
      san: 'spiffe://acme.example/db',
      protocols: ['http'],
      endpoints,
    };
    const task: ForeignOwnerTask = { cert, key, ca, listen: { host: acme.address, port: 8008 }, service };
    const owner = net.start(acme, process.execPath, [ownerScript, JSON.stringify(task)]);
    stops.push(() => owner.kill());
    await new Promise<void>((resolve) => owner.stdout!.once('data', () => resolve()));
    for (const step of rest.slice(0, -1)) await typist.done(step);
    await answered(rest.at(-1)!).toMatch(virtualAddress);
  });
});
