// Commands of the CLI in a simulated clusterset: what they do when something is away.

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { join } from '../../src/cli/clusterset/join.ts';
import { leave } from '../../src/cli/clusterset/leave.ts';
import { findPodRanges, findServiceRanges } from '../../src/cli/clusterset/own-ranges.ts';
import { refuseForeignDefinitions } from '../../src/cli/definitions.ts';
import type { Definition } from '../../src/cli/stored-versions.ts';
import { membershipRef } from '../../src/clusterset/explain/consult.ts';
import { exportToAnnotation, serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { serviceExportPolicyType } from '../../src/clusterset/kinds/service-export-policy.ts';
import type { JoinToken } from '../../src/clusterset/membership/join-token.ts';
import { leavingAnnotation } from '../../src/clusterset/membership/membership.ts';
import { type Client, createClient } from '../../src/kube/client/client.ts';
import { leaseType } from '../../src/kube/objects/lease.ts';
import { nodeType } from '../../src/kube/objects/node.ts';
import { systemNamespace } from '../../src/kube/objects/ours.ts';
import { secretType } from '../../src/kube/objects/secret.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { memberNamespace, SimClusterSet, setName } from '../clusterset.ts';
import { type CommandDesk, openDesk, typeAt } from '../command.ts';
import { type Fault, withFaults } from '../faults.ts';
import { exportService } from '../manifests.ts';

const key = 'shop/checkout';
const ref = { namespace: 'shop', name: 'checkout' };

async function twoClusters(faults: Fault[] = []) {
  const wrap = withFaults(faults);
  const set = await new SimClusterSet({ clusters: ['east', 'west'], wrap }).start({ namespaces: ['shop'] });
  await exportService(set.home('east').admin, key, { endpoints: ['10.1.0.1'] });
  await exportService(set.home('west').admin, key, { endpoints: ['10.2.0.1'] });
  await set.time.advance(20_000);
  const desk = await openDesk(set, 'west');
  const isLeaving = async () => {
    const { metadata } = await desk.home.get(secretType, membershipRef);
    return metadata.annotations?.[leavingAnnotation] !== undefined;
  };
  return { set, desk, isLeaving };
}

/** As typed, with what was printed and the exit code. */
async function typed(set: SimClusterSet, desk: CommandDesk, words: string) {
  const lines = await set.time.settle(typeAt(desk, words));
  return { lines, text: lines.join('\n'), exitCode: desk.exitCode };
}

/** east goes and comes back, as often as said. */
async function flap(set: SimClusterSet, times: number): Promise<void> {
  for (let round = 0; round < times; round += 1) {
    set.killAgent('east');
    await set.time.advance(60_000);
    set.startAgent('east');
    await set.time.advance(12_000);
  }
}

describe('status and explain', () => {
  test('status: a cluster is alive, stale, held down, alive again -> said so at every look, with what is withdrawn', async () => {
    const { set, desk } = await twoClusters();
    expect((await typed(set, desk, 'status')).text).toMatch(/^east .* not joined .*$/m);
    set.killAgent('east');
    await set.time.advance(60_000);
    const stale = await typed(set, desk, 'status');
    expect(stale.text).toMatch(/^east +- +- +stale since \S+Z /m);
    expect(stale.text).toMatch(
      /^cluster east is not trusted, because its lease has run out, \S+Z; withdrawn: shop\/checkout$/m,
    );
    set.startAgent('east');
    await set.time.advance(12_000);
    await flap(set, 1);
    for (let look = 0; look < 10; look += 1) {
      const { text, lines } = await typed(set, desk, 'status');
      expect(text).toMatch(/^east +- +- +held down until \S+Z /m);
      expect(text).toMatch(/because it has come back 2 times lately and is held down until \S+Z; withdrawn: shop/);
      expect(lines.find((line) => line.startsWith('lag'))).toContain('lag: none');
      await set.time.advance(3_000);
    }
    await set.time.advance(60_000);
    expect((await typed(set, desk, 'status')).text).not.toContain('is not trusted');
  });

  test('status: an export that is kept or marked when stale -> said so', async () => {
    const { set, desk } = await twoClusters();
    const annotations = { 'portolan.dev/on-stale': 'keep' };
    await set.home('east').admin.patch(serviceExportType, ref, { kind: 'merge', body: { metadata: { annotations } } });
    await set.time.advance(3_000);
    set.killAgent('east');
    await set.time.advance(60_000);
    expect((await typed(set, desk, 'status')).text).toMatch(/; kept all the same: shop\/checkout$/m);
  });

  test('explain: a cluster is held down -> said in the table; the only one -> why the service is withdrawn', async () => {
    const { set, desk } = await twoClusters();
    await exportService(set.home('east').admin, 'shop/only', { endpoints: ['10.1.0.2'] });
    await flap(set, 2);
    expect((await typed(set, desk, `explain ${key}`)).text).toMatch(/^east +- +held down until \S+Z +no, held down /m);
    await expect(typed(set, desk, 'explain shop/only')).rejects.toThrow(
      /^service shop\/only is withdrawn: cluster east exports it, and it has come back 2 times lately and is held down/,
    );
  });

  test('status: one member cannot be read -> said, and everything else is shown', async () => {
    const faults: Fault[] = [];
    const { set, desk } = await twoClusters(faults);
    faults.push({
      home: 'broker',
      method: 'GET',
      path: `/namespaces/${memberNamespace('east')}/`,
      code: 403,
      times: Number.POSITIVE_INFINITY,
    });
    const { text, exitCode } = await typed(set, desk, 'status');
    expect(text).toMatch(/^east .*not readable/m);
    expect(text).toMatch(/^shop\/checkout .* as last known$/m);
    expect(text).toMatch(/^cluster east cannot be read: /m);
    expect(exitCode).toBe(8);
  });

  test('status: nothing is wrong -> exit code 0; the own agent is dead -> silent since when, what to do, exit code 7', async () => {
    const { set, desk } = await twoClusters();
    expect((await typed(set, desk, 'status')).exitCode).toBe(0);
    set.killAgent('west');
    await set.time.advance(60_000);
    const { text, exitCode } = await typed(set, desk, 'status');
    expect(text).toMatch(
      /^problem: PTL0202 agent of cluster west: it has not renewed its lease for \d+s, since .*; next step: Start portolan agent in that cluster, or read its log\. Delete its Lease if that machine is gone for good\.$/m,
    );
    expect(exitCode).toBe(7);
  });

  test('status: at the broker -> all members with their leases and services; an agent is dead -> said, exit code 7', async () => {
    const { set, desk } = await twoClusters();
    desk.files.set('broker', desk.files.get('home.kubeconfig')!.replaceAll('https://west', 'https://broker'));
    const fine = await typed(set, desk, 'status --kubeconfig broker');
    expect(fine.text).toContain('clusterset prod at https://broker, seen at the broker');
    expect(fine.text).toMatch(/^shop\/checkout +ClusterSetIP +east,west +- +seen at the broker$/m);
    expect(fine.exitCode).toBe(0);
    set.killAgent('east');
    await set.time.advance(60_000);
    const { text, exitCode } = await typed(set, desk, 'status --kubeconfig broker');
    expect(text).toMatch(
      /^problem: PTL0202 agent of cluster east: it has not renewed its lease for \d+s, since .*; next step: Start portolan agent/m,
    );
    expect(exitCode).toBe(7);
  });

  test('status: several homes, one is away -> each is shown, the one that is away is named, exit code 6', async () => {
    const faults: Fault[] = [];
    const { set, desk } = await twoClusters(faults);
    desk.files.set('east', desk.files.get('home.kubeconfig')!.replaceAll('https://west', 'https://east'));
    faults.push({ home: 'east', method: 'GET', path: '/', code: 503, times: Number.POSITIVE_INFINITY });
    const { text, exitCode } = await typed(set, desk, 'status --kubeconfig home.kubeconfig east');
    expect(text).toContain('this cluster is west');
    expect(text).toMatch(/^problem: east: /m);
    expect(exitCode).toBe(6);
    const json = JSON.parse((await typed(set, desk, 'status -o json --kubeconfig home.kubeconfig east')).text);
    expect(json).toMatchObject([{ cluster: 'west' }, { home: 'east', problem: expect.any(String) }]);
  });

  test('status: a part that reports, and one that has stopped reporting -> each said, exit code 7', async () => {
    const { set, desk } = await twoClusters();
    const lease = (name: string, ageMs: number) => ({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        name,
        namespace: systemNamespace,
        labels: { 'portolan.dev/part': 'dns' },
        annotations: { 'portolan.dev/node': name, 'portolan.dev/version': '1.0.0' },
      },
      spec: {
        leaseDurationSeconds: 30,
        renewTime: new Date(desk.deps.world.clock.wallMs() - ageMs).toISOString(),
      },
    });
    await set.home('west').admin.create(leaseType, lease('fresh', 1_000));
    expect(await typed(set, desk, 'status')).toMatchObject({
      exitCode: 0,
      text: expect.stringMatching(/^dns +fresh +- +1\.0\.0 +reporting +1s ago$/m),
    });
    await set.home('west').admin.create(leaseType, lease('gone', 45_000));
    const { text, exitCode } = await typed(set, desk, 'status');
    expect(text).toMatch(
      /^problem: PTL0501 dns on gone: it has not reported for 45s, since .*; next step: Start portolan dns on that node, or delete its Lease/m,
    );
    expect(exitCode).toBe(7);
  });

  test('status, explain: the broker is away -> what the cluster last knew, said to be old, and exit code 6', async () => {
    const { set, desk } = await twoClusters();
    set.killAgent('east');
    await set.time.advance(60_000);
    set.broker.kill();
    const status = await typed(set, desk, 'status');
    expect(status.text).toMatch(
      /^the broker does not answer \(.*\): this is the last known state, and may be outdated$/m,
    );
    expect(status.text).toMatch(/^east +- +- +unknown \(was stale since /m);
    expect(status.text).toMatch(/^shop\/checkout +ClusterSetIP +west +- +as last known$/m);
    expect(status.exitCode).toBe(6);
    const explained = await typed(set, desk, `explain ${key}`);
    expect(explained.text).toContain('ClusterSetIP, ports http 80/TCP');
    expect(explained.text).toContain('export: Ready True/Exported');
    expect(explained.exitCode).toBe(6);
    await expect(typed(set, desk, 'explain shop/none')).rejects.toThrow('this cluster has no import or export of it');
  });

  test('status, explain: the cluster was removed at the broker -> said, with what to do', async () => {
    const faults: Fault[] = [];
    const { set, desk } = await twoClusters(faults);
    faults.push({ home: 'broker', method: 'GET', path: '/', code: 401, times: Number.POSITIVE_INFINITY });
    for (const words of ['status', `explain ${key}`]) {
      await expect(typed(set, desk, words)).rejects.toThrow(
        /this cluster was removed from clusterset prod, or its credentials were revoked .* run portolan leave --offline, then join/,
      );
    }
  });
});

describe('plan', () => {
  const port = (number: number) => `spec: {ports: [{name: http, port: ${number}}]}`;
  const serviceYaml = (name: string, number = 80, labels = '') =>
    `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}, namespace: shop${labels}}\n${port(number)}\n`;
  const policyYaml = (serviceSelector: string) =>
    `apiVersion: portolan.dev/v1alpha1\nkind: ServiceExportPolicy\nmetadata: {name: all}\nspec: {namespaces: [shop], serviceSelector: {matchLabels: ${serviceSelector}}}\n`;

  async function planned(yaml: string) {
    const { set, desk } = await twoClusters();
    desk.files.set('plan.yaml', yaml);
    const before = set.home('west').revision;
    const result = await typed(set, desk, 'plan -f plan.yaml');
    expect(set.home('west').revision).toBe(before);
    return result;
  }

  test('plan: only a changed Service of something exported -> what that would do', async () => {
    const fine = await planned(serviceYaml('checkout'));
    expect([fine.exitCode, fine.lines.at(-1)]).toEqual([0, expect.stringContaining('1 export in cluster west')]);
    const conflict = await planned(serviceYaml('checkout', 81));
    expect(conflict.text).toMatch(/Conflict +True +PortConflict/);
    expect(conflict.exitCode).toBe(9);
  });

  test('plan: a Service without an export -> said, not dropped', async () => {
    const { text, exitCode } = await planned(serviceYaml('lonely'));
    expect(text).toContain('not exported, so no other cluster would notice: Service shop/lonely');
    expect(exitCode).toBe(0);
  });

  test('plan: a ServiceExportPolicy -> the exports it would make, also of Services in the same file', async () => {
    const labels = ', labels: {export: yes-please}';
    const yaml = `${policyYaml('{export: yes-please}')}---\n${serviceYaml('new', 80, labels)}---\n${serviceYaml('old')}`;
    const { text, exitCode } = await planned(yaml);
    expect(text).toMatch(/^shop\/new would have\n.*\n +Valid +True/m);
    expect(text).toContain('not exported, so no other cluster would notice: Service shop/old');
    expect(text).not.toContain('not looked at');
    expect(exitCode).toBe(0);
    const invalid = policyYaml('{a: b}').replace('spec: {', 'spec: {onStale: Never, ');
    await expect(planned(invalid)).rejects.toThrow('onStale');
  });

  test('plan: a ServiceExportPolicy that selects less -> which exports would go', async () => {
    const { set, desk } = await twoClusters();
    const web = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace: 'shop', labels: { a: 'b' } } };
    await desk.home.create(serviceType, { ...web, spec: { ports: [{ name: 'http', port: 80 }] } });
    await desk.home.create(serviceExportPolicyType, parse(policyYaml('{a: b}')));
    await set.time.advance(10_000);
    desk.files.set('plan.yaml', policyYaml('{a: c}'));
    const { text, exitCode } = await typed(set, desk, 'plan -f plan.yaml');
    expect(text).toContain('shop/web would no longer be exported: no policy would select it');
    expect(text).toContain('the import would be removed');
    expect(exitCode).toBe(0);
  });
});

describe('export', () => {
  test('export: limited to some clusters, then exported again -> still limited, and said; --to all -> lifted', async () => {
    const { set, desk } = await twoClusters();
    const say = async (words: string) => (await typed(set, desk, words)).lines.at(-1);
    const limit = async () =>
      (await desk.home.get(serviceExportType, ref)).metadata.annotations?.['portolan.dev/export-to'];
    expect(await say(`export ${key} --to east`)).toBe('shop/checkout is exported anew');
    expect(await say(`export ${key}`)).toBe('shop/checkout is exported already, only to east; --to all lifts that');
    expect(await limit()).toBe('east');
    expect(await say(`export ${key} --to all`)).toBe(
      'shop/checkout is exported to all clusters, no longer only to east',
    );
    expect(await limit()).toBeUndefined();
    expect(await say(`export ${key} --to all`)).toBe('shop/checkout is exported already');
    await expect(typed(set, desk, `export ${key} --to all,east`)).rejects.toThrow('write all alone');
  });

  test('export --wait: the agent is dead, then started -> never ready for the state before, and names the cluster it waits for', async () => {
    const { set, desk } = await twoClusters();
    set.killAgent('west');
    const waiting = typed(set, desk, `export ${key} --to east --wait --timeout 5`);
    await expect(waiting).rejects.toThrow(
      'export shop/checkout: not done after 5 s: the agent of cluster west has not published the change to the broker',
    );
    set.startAgent('west');
    expect((await typed(set, desk, `export ${key} --to east --wait --timeout 60`)).lines.at(-1)).toMatch(
      /^shop\/checkout is ready/,
    );
  });

  test('export --wait: the membership may not be read -> waits by the conditions of the export alone', async () => {
    const faults: Fault[] = [];
    const { set, desk } = await twoClusters(faults);
    const unreadable = { home: 'west', method: 'GET', path: '/secrets/portolan-broker', from: 'admin', code: 403 };
    faults.push({ ...unreadable, times: Number.POSITIVE_INFINITY });
    const say = async (words: string) => (await typed(set, desk, words)).lines.at(-1);
    expect(await say(`export ${key} --to east --wait`)).toBe('shop/checkout is ready: exported to east only');
    set.killAgent('west');
    await expect(say(`export ${key} --to all --wait --timeout 5`)).rejects.toThrow(
      'not done after 5 s: the agent of this cluster has not published the change to the broker',
    );
    set.startAgent('west');
    expect(await say(`export ${key} --wait --timeout 60`)).toBe('shop/checkout is ready: exported to the clusterset');
  });

  test('export: to a cluster that the clusterset does not have -> an error that names it, nothing is written', async () => {
    const { set, desk } = await twoClusters();
    await expect(typed(set, desk, `export ${key} --to east,nosuch`)).rejects.toThrow(
      'export shop/checkout: the clusterset has no cluster nosuch; portolan status lists its clusters',
    );
    expect((await desk.home.get(serviceExportType, ref)).metadata.annotations?.[exportToAnnotation]).toBeUndefined();
  });
});

describe('join', () => {
  test('join: ranges that are not given -> services as the home hands them out, pods as its nodes have them', async () => {
    const { desk, set } = await twoClusters();
    const before = set.home('west').revision;
    expect(await findServiceRanges(desk.home)).toEqual(['10.101.0.0/16', 'fd00:101::/112']);
    expect(await findPodRanges(desk.home)).toEqual([]);
    expect(set.home('west').revision).toBe(before);
    for (const [name, podCIDRs] of [
      ['a', ['10.9.0.0/24', 'fd00:9::/64']],
      ['b', ['10.9.1.0/24']],
    ] as const) {
      const node = { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec: { podCIDRs: [...podCIDRs] } };
      await desk.home.create(nodeType, node);
    }
    expect(await findPodRanges(desk.home)).toEqual(['10.9.0.0/24', 'fd00:9::/64', '10.9.1.0/24']);
  });

  test('join: who may not see nodes, and a home that says nothing of its services -> not known, not guessed', async () => {
    const faults: Fault[] = [];
    const { set } = await twoClusters(faults);
    const client = set.home('west').clientOf(set.simulation.world('agent-west'));
    const times = Number.POSITIVE_INFINITY;
    faults.push({ home: 'west', method: 'GET', path: '/nodes', code: 403, times });
    faults.push({ home: 'west', method: 'GET', path: '/servicecidrs', code: 403, times });
    faults.push({ home: 'west', method: 'POST', path: '/services', code: 403, times });
    expect(await set.time.settle(findPodRanges(client))).toEqual([]);
    expect(await set.time.settle(findServiceRanges(client))).toEqual([]);
  });
});

describe('join: an older API', () => {
  test('join: definitions that serve only v1alpha1 -> refused with what to apply; nothing is written', async () => {
    const { set, desk } = await twoClusters();
    const writes: string[] = [];
    const versions = [{ name: 'v1alpha1', served: true, storage: true }];
    const definition = { metadata: { name: 'any' }, spec: { group: 'multicluster.x-k8s.io', versions } };
    set.simulation.network.listen('https://older', async ({ method, path }) => {
      if (method !== 'GET') writes.push(path);
      return path.includes('/customresourcedefinitions/serviceexports')
        ? { status: 200, headers: {}, body: Buffer.from(JSON.stringify(definition)) }
        : { status: 404, headers: {}, body: Buffer.from('{"kind":"Status","code":404,"reason":"NotFound"}') };
    });
    const { world } = desk.deps;
    const home = createClient(world.network.http({ server: 'https://older' }), { world, userAgent: 'test' });
    const host = { ...desk.deps.host, readText: async (file: string) => readFileSync(file, 'utf8') };
    const token = { clusterset: setName, clusterId: 'west' } as JoinToken;
    const claims = { region: '', zone: '', podRanges: [], serviceRanges: [] };
    const joined = join({ ...desk.deps, host }, { home, token, claims, lifetimeMs: 1 });
    await expect(set.time.settle(joined)).rejects.toThrow(
      'definition serviceexports.multicluster.x-k8s.io of this cluster belongs to another implementation and serves v1alpha1, not v1beta1; apply deploy/crds/serviceexports.yaml',
    );
    expect(writes).toEqual([]);
  });
});

describe('join: definitions of our own', () => {
  test.each([
    ['without the label, as an older release made them', {}],
    ['with the label of the tool that installed them', { 'app.kubernetes.io/managed-by': 'Helm' }],
  ])(
    'join: %s, and other than this release has them -> upgraded, not called those of another implementation',
    async (_what, labels) => {
      const { desk } = await twoClusters();
      const ours = parse(readFileSync('deploy/crds/serviceexports.yaml', 'utf8')) as Record<string, never>;
      const older = structuredClone(ours) as unknown as Definition & { spec: { versions: object[] } };
      older.metadata.labels = labels;
      for (const version of older.spec.versions) Object.assign(version, { additionalPrinterColumns: [] });
      const client = { get: async () => older } as unknown as Client;
      const host = { ...desk.deps.host, readText: async (file: string) => readFileSync(file, 'utf8') };
      const request = { client, host, world: desk.deps.world, names: ['serviceexports'] };
      expect(await refuseForeignDefinitions(request)).toEqual([]);
    },
  );
});

describe('leave', () => {
  test('leave: the broker is down -> an error, and the cluster is a member as before', async () => {
    const { set, desk } = await twoClusters();
    const secret = await desk.home.get(secretType, membershipRef);
    set.broker.kill();
    const left = leave(desk.deps, { home: desk.home, isOffline: false });
    await expect(set.time.settle(left)).rejects.toThrow('this cluster is still a member; try again, or give --offline');
    // Not even marked for a moment: agents would have stopped.
    expect(await desk.home.get(secretType, membershipRef)).toEqual(secret);
  });

  test('leave: the broker goes away while agents come to rest -> the mark is taken back', async () => {
    const faults: Fault[] = [];
    const { set, desk, isLeaving } = await twoClusters(faults);
    faults.push({ home: 'broker', method: 'GET', path: '/leases/', times: Number.POSITIVE_INFINITY });
    const left = leave(desk.deps, { home: desk.home, isOffline: false });
    await expect(set.time.settle(left)).rejects.toThrow('made to fail');
    expect(await isLeaving()).toBe(false);
  });
});
