import { expect, test } from 'vitest';
import { startHome } from '../../sim/home.ts';
import { Simulation } from '../../sim/virtual-world.ts';
import { createLog } from '../base/log.ts';
import type { ProbeTarget } from '../base/prober.ts';
import { type EndpointSlice, endpointSliceType } from '../kube/objects/endpoint-slice.ts';
import { type HealthCheck, parseProbe } from './health-check.ts';
import { type Registration, registrationSlice } from './registration.ts';
import { RegistrationController } from './registration-controller.ts';

test('registration: checks succeed, fail, succeed -> readiness follows its thresholds', async () => {
  const { register, ready, health, probes } = await start();
  await register({ check: check({ rise: 2, fall: 3 }) });
  const seen: (boolean | undefined)[] = [];
  for (const isGood of [false, true, false, true, true, false, false, true, false, false, false]) {
    health.isGood = isGood;
    await probes(1);
    seen.push(await ready());
  }
  expect(seen.map((isReady) => (isReady ? '+' : '-')).join('')).toBe('----++++++-');
});

test('registration: nothing changes for an hour -> nothing is written', async () => {
  const { sim, home, register, ready, targets } = await start();
  await register({ check: check({}) });
  await sim.time.advance(10_000);
  expect(await ready()).toBe(true);
  const revision = home.revision;
  const before = targets.length;
  await sim.time.advance(3_600_000);
  expect(targets.length - before).toBeGreaterThan(600);
  expect(home.revision).toBe(revision);
});

test('registration: one bad answer between good ones -> stays ready', async () => {
  const { sim, register, ready, health } = await start();
  await register({ check: check({ fall: 2 }) });
  await sim.time.advance(10_000);
  let count = 0;
  health.next = () => ++count % 2 === 0;
  for (let round = 0; round < 20; round += 1) {
    await sim.time.advance(5_000);
    expect(await ready()).toBe(true);
  }
});

test('registration: what is asked -> the registered address, whatever host the URL names', async () => {
  const { sim, register, targets } = await start();
  await register({ check: check({ probe: parseProbe('https://elsewhere.test:9443/healthz', 80) }) });
  await sim.time.advance(5_000);
  expect(targets[0]).toEqual({
    address: '10.0.0.7',
    port: 9443,
    http: { isSecure: true, host: 'elsewhere.test:9443', path: '/healthz' },
    timeoutMs: 1000,
  });
});

test('registration: no check -> left alone', async () => {
  const { sim, register, ready, targets, controller } = await start();
  await register({});
  await sim.time.advance(60_000);
  expect([await ready(), targets.length, controller.checks]).toEqual([true, 0, 0]);
});

test('registration: the check changes -> the new one counts; deregistered -> no more probes', async () => {
  const { sim, register, remove, targets, controller } = await start();
  await register({ check: check({ probe: { kind: 'tcp', port: 80 } }) });
  await sim.time.advance(10_000);
  await register({ check: check({ probe: { kind: 'tcp', port: 81 } }) });
  await sim.time.advance(1_000);
  targets.length = 0;
  await sim.time.advance(30_000);
  expect(new Set(targets.map(({ port }) => port))).toEqual(new Set([81]));
  await remove();
  await sim.time.advance(1_000);
  targets.length = 0;
  await sim.time.advance(60_000);
  expect([targets.length, controller.checks]).toEqual([0, 0]);
});

test('registration: the controller restarts while the process is well -> it stays ready all the time', async () => {
  const { sim, home, register, ready, restart, health } = await start();
  await register({ check: check({ fall: 3 }) });
  await sim.time.advance(10_000);
  const revision = home.revision;
  health.isGood = false;
  await restart();
  await sim.time.advance(8_000);
  health.isGood = true;
  await sim.time.advance(60_000);
  expect([await ready(), home.revision]).toEqual([true, revision]);
});

test('registration: the home is away when readiness changes -> written when it is back', async () => {
  const { sim, home, register, ready, health } = await start();
  await register({ check: check({}) });
  await sim.time.advance(10_000);
  sim.network.setLink('agent', home.url, 'refused');
  health.isGood = false;
  await sim.time.advance(60_000);
  sim.network.setLink('agent', home.url, 'up');
  await sim.time.advance(60_000);
  expect(await ready()).toBe(false);
});

test.each([
  'nonsense',
  '{}',
  '{"probe":{"kind":"icmp"}}',
  '{"probe":{"kind":"tcp","port":99999},"intervalMs":1,"timeoutMs":1,"rise":1,"fall":1}',
])('registration: a check that says %s -> not probed, and the log says so', async (annotation) => {
  const { sim, register, controller, lines } = await start();
  await register({ check: check({}), annotation });
  await sim.time.advance(10_000);
  expect(controller.checks).toBe(0);
  expect(lines.join('')).toContain('check cannot be read');
});

function check(options: Partial<HealthCheck>): HealthCheck {
  return { probe: { kind: 'tcp', port: 80 }, intervalMs: 5000, timeoutMs: 1000, rise: 1, fall: 3, ...options };
}

async function start() {
  const sim = new Simulation({ seed: 9 });
  const home = await startHome(sim);
  const client = home.clientOf(sim.world('test'));
  const targets: ProbeTarget[] = [];
  const health = { isGood: true, next: undefined as (() => boolean) | undefined };
  const lines: string[] = [];
  const prober = {
    probe: async (target: ProbeTarget) => {
      targets.push(target);
      return (health.next?.() ?? health.isGood)
        ? { isGood: true as const }
        : { isGood: false as const, reason: 'closed' };
    },
  };
  const run = (name: string) => {
    const world = sim.world(name);
    const log = createLog({ clock: world.clock, level: 'info', write: (line) => lines.push(line) });
    return new RegistrationController({ client: home.clientOf(world), world, log, prober });
  };
  let controller = run('agent');
  const ref = { namespace: 'default', name: 'web-reg' };
  const slice = () => client.get<EndpointSlice>(endpointSliceType, ref);
  return {
    sim,
    home,
    targets,
    health,
    lines,
    get controller() {
      return controller;
    },
    register: async ({ check, annotation }: { check?: HealthCheck; annotation?: string }) => {
      const registration: Registration = {
        namespace: 'default',
        service: 'web',
        address: '10.0.0.7',
        ports: [],
        check,
      };
      const present = await sim.time.settle(slice().catch(() => undefined));
      const owner = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', uid: 'x' } };
      const { ownerReferences: _none, ...metadata } = registrationSlice(registration, owner, present).metadata;
      const annotations = annotation === undefined ? metadata.annotations : { 'portolan.dev/check': annotation };
      const wanted = {
        ...registrationSlice(registration, owner, present),
        metadata: { ...metadata, ...ref, annotations },
      };
      await sim.time.settle(
        present ? client.update(endpointSliceType, wanted) : client.create(endpointSliceType, wanted),
      );
    },
    probes: async (count: number) => {
      const wanted = targets.length + count;
      await sim.time.until(() => targets.length >= wanted, { withinMs: 60_000 });
      await sim.time.advance(50);
    },
    remove: () => sim.time.settle(client.delete(endpointSliceType, ref)),
    ready: async () => (await sim.time.settle(slice())).endpoints[0]?.conditions?.ready,
    restart: async () => {
      controller.stop();
      controller = run('agent again');
    },
  };
}
