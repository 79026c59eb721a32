// docs/quickstart/two-machines.md is typed as it stands there, on two network namespaces that stand for the machines, and its
// commands are counted.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Federation } from '../src/federation/kinds/federation.ts';
import { pathOf } from './support/counterparts.ts';
import { Namespaces, namespacesMissing } from './support/namespaces.ts';
import { stepsOf, Typist } from './support/quickstart.ts';

const steps = stepsOf('two-machines.md');
const sectionOf = (title: string) => steps.filter(({ section }) => section === title);

const missing =
  namespacesMissing() || (pathOf('dig') && pathOf('curl') && pathOf('kubectl') ? '' : ' (needs dig, curl, kubectl)');
describe.skipIf(missing !== '')(`quick start: two machines${missing}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-quickstart-'));
  let net: Namespaces;
  let typist: Typist;
  const stops: (() => Promise<unknown> | unknown)[] = [];

  beforeAll(() => {
    net = new Namespaces('qs');
    const east = net.addMachine('east', 11);
    const west = net.addMachine('west', 12);
    const machines = [east, west].map((place, n) => ({ name: ['east', 'west'][n]!, within: net.within(place) }));
    const translate = (command: string) =>
      command.replaceAll('10.0.0.1', east.address).replaceAll('10.0.0.2', west.address);
    typist = new Typist({ folder, machines, translate, tools: { kubectl: pathOf('kubectl')! } });
    const script = "require('http').createServer((q, s) => s.end('checkout on east\\n')).listen(8080)";
    const server = net.start(east, process.execPath, ['-e', script]);
    stops.push(() => server.kill());
  });
  afterAll(async () => {
    await typist.stop();
    for (const stop of stops) await stop();
    net.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  test('two clusters share a service -> at most 7 commands, and the last one gets an answer by name', async () => {
    const typed = sectionOf('Share a service');
    expect(typed.length).toBeLessThanOrEqual(7);
    for (const step of typed.slice(0, -1)) await typist.done(step);
    const last = typed.at(-1)!;
    await expect
      .poll(async () => (await typist.type(last)).out, { timeout: 30_000, interval: 300 })
      .toBe('checkout on east\n');
  });

  test('a federated name with pushed stub zones -> at most 5 more commands, an answer on both machines, and no certificate made by hand', async () => {
    const typed = sectionOf('Add a federated name');
    expect(typed.length).toBeLessThanOrEqual(5);
    for (const step of typed.slice(0, -2)) await typist.done(step);
    for (const step of typed.slice(-2)) {
      expect(step.command).toMatch(/^curl .*svc\.federation/);
      await expect
        .poll(async () => (await typist.type(step)).out, { timeout: 30_000, interval: 300 })
        .toBe('checkout on east\n');
    }
    const told = async () => {
      const { out } = await typist.type({
        ...{ machine: 'east', section: '' },
        command: 'kubectl --kubeconfig broker/admin.kubeconfig get federation world -n prod -o json',
      });
      const { stubZones, conditions } = (JSON.parse(out) as Federation).status ?? {};
      const states = stubZones?.map(({ cluster, state }) => [cluster, state]);
      return { states, ready: conditions?.find(({ type }) => type === 'Ready')?.status };
    };
    const posted = [
      ['east', 'Posted'],
      ['west', 'Posted'],
    ];
    // A resolver that does not know the authority yet refuses; it is asked again.
    await expect.poll(told, { timeout: 60_000, interval: 500 }).toEqual({ states: posted, ready: 'True' });
    expect(steps.filter(({ command }) => /openssl|certificate|\.pem|\.crt|\.key/.test(command))).toEqual([]);
  });
});
