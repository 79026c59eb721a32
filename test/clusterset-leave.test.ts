// Exports are taken back, members leave or are removed, until nobody is left. The tests follow each other.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { importLine, sliceLines } from '../sim/look.ts';
import { type ServiceShard, serviceShardType } from '../src/clusterset/kinds/service-shard.ts';
import { membershipSecretName } from '../src/clusterset/membership/membership.ts';
import { getOrUndefined } from '../src/kube/client/absent.ts';
import { systemNamespace } from '../src/kube/objects/ours.ts';
import { secretType } from '../src/kube/objects/secret.ts';
import { everything, type TestHome, type, until } from './support/clusterset.ts';
import { key, MemberSet, record, stateOf } from './support/member-set.ts';

const members = new MemberSet();
let broker: TestHome;
let east: TestHome;
let west: TestHome;
let north: TestHome;

beforeAll(async () => {
  ({ broker, east, west, north } = await members.startMembers());
  await members.exportCheckout();
  await members.at(north, `register ${key} --address 10.3.0.5 --port http=81:8080`);
  await members.at(north, `export ${key} --wait`);
});
afterAll(() => members.stop());

/** Without what every embedded home has of its own. */
async function namesAt({ client }: { readonly client: Parameters<typeof everything>[0] }): Promise<string[]> {
  const own = /\/kube-root-ca\.crt$|^(Service|EndpointSlice) default\/kubernetes$/;
  return [...(await everything(client)).keys()].filter((name) => !own.test(name));
}

describe('leaving', () => {
  test('unexport: the oldest takes it back -> gone from the broker, the others decide [002-29]', async () => {
    const { lines } = await members.at(east, `unexport ${key} --wait`);
    expect(lines.at(-1)).toBe(`${key} is withdrawn`);
    for (const home of [east, west, north]) {
      await until('without east', async () =>
        (await sliceLines(home.client, key)).every((line) => !line.startsWith('east:')),
      );
      await until('the import too', async () => !(await importLine(home.client, key)).includes('east'));
    }
    expect(
      await getOrUndefined<ServiceShard>(broker.client, serviceShardType, { namespace: 'prod-m-east', name: record }),
    ).toBeUndefined();
  });

  test('leave: a member whose agent runs -> no trace at the broker nor at home; what people made stays [003-09]', async () => {
    const { lines } = await members.at(west, 'leave');
    expect(lines).toEqual(['this cluster has left clusterset prod']);
    await until('forgotten', async () =>
      [...(await everything(broker.client)).keys()].every((name) => !name.includes('west')),
    );
    const left = await namesAt(west);
    const ours = /ServiceImport|AddressClaim|ClusterProperty|Secret |ConfigMap /;
    expect(left.filter((name) => ours.test(name))).toEqual([]);
    expect(left.filter((name) => name.startsWith('EndpointSlice'))).toEqual([expect.stringContaining('checkout-reg-')]);
    expect(left).toContain('ServiceExport shop/checkout');
    expect((await members.at(west, 'status').catch((error: Error) => error.message)) as string).toContain(
      'is not a member',
    );
    const agent = members.agents.get('west')!;
    expect((await fetch(`${agent.admin}/readyz`)).status).toBe(503);
    for (const home of [east, north]) {
      await until(
        'others see it',
        async () => (await importLine(home.client, key)) === 'ClusterSetIP http:81/TCP from north',
      );
    }
    expect((await members.at(west, 'leave')).lines).toEqual(['this cluster is not a member of a clusterset']);
  });

  test('join: after leaving under another id, the agent still running -> it works for the new one [003-14]', async () => {
    await members.at(west, `join ${await members.token('west-2')} --pod-cidr 10.2.0.0/16`);
    await until('exported again', async () => (await importLine(east.client, key)).includes('north,west-2'));
    expect(await stateOf(members.agents.get('west')!)).toBe('leading');
  });

  test('broker remove: a cluster that lives -> refused; one that is gone -> removed with all it had', async () => {
    await expect(members.atBroker('remove west-2')).rejects.toThrow(
      /^cluster west-2 has just renewed its lease: run portolan leave/,
    );
    await members.agents.get('west')!.stop('SIGKILL');
    await until('the others judge it', async () => {
      const { clusters } = JSON.parse((await members.at(east, 'status -o json')).lines.join('\n'));
      return clusters.some(({ id, lease }: { id: string; lease: string }) => id === 'west-2' && lease === 'stale');
    });
    expect((await members.at(east, `explain ${key}`)).lines.join('\n')).toMatch(
      // It joined last: of the port on which they disagree it has the other number.
      /^west-2 +\S+ +stale since \S+Z +yes +- +0 +all$/m,
    );
    await until(
      'its lease has run out',
      async () => (await members.atBroker('remove west-2').catch(() => undefined)) !== undefined,
    );
    await until('gone', async () =>
      [...(await everything(broker.client)).keys()].every((name) => !name.includes('west')),
    );
    await until(
      'others see it',
      async () => (await importLine(east.client, key)) === 'ClusterSetIP http:81/TCP from north',
    );
    expect((await members.atBroker('remove west-2')).lines).toEqual([
      'cluster west-2 is not a member of clusterset prod',
    ]);
    // The cluster comes back and is notified; leaving cleans its home.
    expect((await members.at(west, 'leave')).lines).toEqual(['this cluster has left clusterset prod']);
  });

  test('broker remove: forced while its agent runs -> the agent says so; joined again -> it goes on', async () => {
    await members.atBroker('remove north --force');
    const agent = members.agents.get('north')!;
    await until('it is told', async () => (await stateOf(agent)) === 'refused');
    const answer = await fetch(`${agent.admin}/readyz`);
    expect([answer.status, await answer.text()]).toEqual([
      503,
      expect.stringContaining('portolan broker token north --renew'),
    ]);
    await expect(members.at(north, 'status')).rejects.toThrow(
      'this cluster was removed from clusterset prod, or its credentials',
    );
    await members.at(north, `join ${await members.token('north')} --pod-cidr 10.3.0.0/16`);
    await until('it works again', async () => (await stateOf(agent)) === 'leading');
    await until(
      'others see it',
      async () => (await importLine(east.client, key)) === 'ClusterSetIP http:81/TCP from north',
    );
  });

  test('leave: the last member -> the merged view is empty [002-28]', async () => {
    await members.at(east, 'leave');
    await members.at(north, 'leave');
    const left = await namesAt(broker);
    expect(left.filter((name) => /^(ServiceImport|Cluster|ServiceShard|EndpointSlice) /.test(name))).toEqual([]);
  });

  test('leave: the broker is away -> an error that says so; --offline -> the home is cleaned all the same', async () => {
    const other = await members.set.startHome('other-broker');
    await type(`broker init --clusterset prod --kubeconfig ${other.kubeconfig}`);
    const text = (
      await type(`broker token lost --clusterset prod --kubeconfig ${other.kubeconfig} --server https://127.0.0.1:9`)
    ).lines[0]!;
    await expect(members.at(north, `join ${text}`)).rejects.toThrow();
    await members.at(
      north,
      `join ${(await type(`broker token lost --clusterset prod --kubeconfig ${other.kubeconfig}`)).lines[0]}`,
    );
    const server = Buffer.from('https://127.0.0.1:9').toString('base64');
    const ref = { namespace: systemNamespace, name: membershipSecretName };
    await north.client.patch(secretType, ref, { kind: 'merge', body: { data: { server } } });
    await expect(members.at(north, 'leave')).rejects.toThrow('the broker https://127.0.0.1:9 cannot be reached');
    expect((await members.at(north, 'leave --offline')).lines).toEqual([
      'tell the admin of the broker: portolan broker remove lost',
      'this cluster has left clusterset prod',
    ]);
    expect(await getOrUndefined(north.client, secretType, ref)).toBeUndefined();
  });
});
