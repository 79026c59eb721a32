// `status` and `doctor` at a member of a simulated clusterset, while homes and parts are slow or hang.

import { expect, test } from 'vitest';
import type { HttpRequest } from '../../base/http.ts';
import { type Heartbeat, heartbeatType } from '../../clusterset/kinds/heartbeat.ts';
import { serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { formatMicroTime, leaseType } from '../../kube/objects/lease.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { serviceType } from '../../kube/objects/service.ts';
import { simulatedMember } from '../testing/simulated-member.ts';
import type { ClusterSetDeps } from '../with-home.ts';
import { addDoctorCommand } from './command.ts';
import { addStatusCommand } from './status.ts';

type Program = Parameters<typeof addStatusCommand>[0];
const doctor = (program: Program, deps: ClusterSetDeps) => addDoctorCommand(program, deps, async () => {});
const status = addStatusCommand;
const clusters = ['west', 'east'];
const isList = (plural: string) => (request: HttpRequest) => new RegExp(`/${plural}(\\?|$)`).test(request.path);

type Member = Awaited<ReturnType<typeof simulatedMember>>;

async function exportCheckout({ set, time }: Member): Promise<void> {
  const { admin } = set.home('east');
  const metadata = { name: 'checkout', namespace: 'shop' };
  const spec = { ports: [{ port: 80, protocol: 'TCP' }] };
  await admin.create(serviceType, { apiVersion: 'v1', kind: 'Service', metadata, spec } as never);
  await admin.create(serviceExportType, {
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceExport',
    metadata,
  });
  await time.advance(3_000);
}

test('doctor, status: reading takes 15 s after the leases were read -> nobody is called silent, ages as they were read', async () => {
  const isSlow = isList('serviceimports');
  const member = await simulatedMember({ clusters, delayMs: (request) => (isSlow(request) ? 15_000 : 0) });
  const found = await member.run(doctor, 'doctor');
  expect(found.tookMs).toBeGreaterThan(15_000);
  expect(found.out).not.toMatch(/PTL0202|PTL0701/);
  const shown = await member.run(status, 'status -o json');
  const { clusters: rows, problems } = JSON.parse(shown.out);
  expect(rows.map(({ id, lease }: { id: string; lease: string }) => `${id} ${lease}`)).toEqual([
    'east alive',
    'west alive',
  ]);
  for (const { renewedAgoMs } of rows) expect(renewedAgoMs).toBeLessThan(6_000);
  expect(problems.filter((line: string) => line.includes('PTL0202'))).toEqual([]);
});

test('doctor: an agent that is silent -> told with its age when the lease was read', async () => {
  const isSlow = isList('serviceimports');
  const member = await simulatedMember({ clusters, delayMs: (request) => (isSlow(request) ? 15_000 : 0) });
  member.set.killAgent('east');
  await member.time.advance(20_000);
  const ref = { namespace: 'prod-m-east', name: 'portolan-agent' };
  const { spec } = await member.set.broker.admin.get<Heartbeat>(heartbeatType, ref);
  const ageSeconds = Math.floor((member.world.clock.wallMs() - Date.parse(spec!.renewTime!)) / 1000);
  const { out, exitCode } = await member.run(doctor, 'doctor');
  expect(exitCode).toBe(7);
  const told = Number(/agent of cluster east: it has not renewed its lease for (\d+)s/.exec(out)?.[1]);
  expect(told - ageSeconds).toBeLessThanOrEqual(1);
});

test('status: the records at the broker take 15 s after the leases were read -> nobody is called silent', async () => {
  const isSlow = isList('serviceshards');
  const member = await simulatedMember({ clusters, delayMs: (request) => (isSlow(request) ? 15_000 : 0) });
  const { out, tookMs } = await member.run(status, 'status -o json');
  expect(tookMs).toBeGreaterThan(15_000);
  for (const { lease, renewedAgoMs } of JSON.parse(out).clusters) {
    expect(lease).toBe('alive');
    expect(renewedAgoMs).toBeLessThan(6_000);
  }
});

test.each([
  ['doctor', doctor, /^PTL0101 error .*: it stopped answering/m],
  ['status', status, /^it stopped answering/],
])(
  '%s: the home hangs in the middle -> exit code 6 within 15 s, and says that it stopped answering',
  async (words, add, text) => {
    const isImports = isList('serviceimports');
    let isHanging = false;
    const member = await simulatedMember({
      clusters,
      delayMs: (request, home) => {
        if (home !== 'west') return 0;
        isHanging ||= isImports(request);
        return isHanging ? Number.POSITIVE_INFINITY : 0;
      },
    });
    const { out, exitCode, tookMs } = await member.run(add, words);
    expect(isHanging).toBe(true);
    expect(out).toMatch(text);
    expect(exitCode).toBe(6);
    expect(tookMs).toBeLessThan(15_000);
  },
);

test.each([
  ['doctor', doctor],
  ['status', status],
])('%s: an import is there at the second look -> no PTL0304; still not there -> PTL0304', async (words, add) => {
  const member = await simulatedMember({ clusters, agents: ['east'] });
  await exportCheckout(member);
  expect((await member.run(add, words)).out).toContain('PTL0304');
  member.world.timers.after(1_000, () => member.set.startAgent('west'));
  expect((await member.run(add, words)).out).not.toContain('PTL0304');
});

test('doctor: a resolver reports and hangs when it is asked -> named after 3 s, and nothing else waits for it', async () => {
  const member = await simulatedMember({
    clusters,
    delayMs: ({ path }) => (path.includes('/proxy/') ? Number.POSITIVE_INFINITY : 0),
  });
  await member.home.admin.create(leaseType, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      ...{ name: 'portolan-dns-n1', namespace: systemNamespace },
      labels: { 'portolan.dev/part': 'dns' },
      annotations: { 'portolan.dev/node': 'n1', 'portolan.dev/admin': 'http://127.0.0.1:9153' },
    },
    spec: { renewTime: formatMicroTime(member.world.clock.wallMs()), leaseDurationSeconds: 12 },
  } as never);
  const { out, tookMs } = await member.run(doctor, 'doctor');
  expect(out).toMatch(/dns on n1: .*no answer within 3000 ms/);
  expect(tookMs).toBeLessThan(5_000);
});
