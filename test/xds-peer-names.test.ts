// An ingress that a peer names by a DNS name, in a real Envoy: the discovery server looks the name up and judges where it
// leads, again and again.

import { expect, test } from 'vitest';
import { type PeerService, peerServiceType } from '../src/peering/kinds/peer-service.ts';
import { namespace } from '../src/peering/testing/edge/memory-home.ts';
import { describeWith } from './support/counterparts.ts';
import { introduce, shareDatabase, startMesh } from './support/xds-meshes.ts';
import { openNamespace, pause, serve, settled, until } from './support/xds-served.ts';

/** A name is looked up again after five seconds at the earliest. */
const wantedMs = 7000;

describeWith(['envoy', 'ip', 'nft'], 'xds: the ingress of a peer is a name', () => {
  test('it moves, cannot be looked up, leads to loopback and back -> followed within 7 s, kept, withheld, served again', async () => {
    const inside = openNamespace();
    const owner = await startMesh('acme', [{ address: 'ingress.acme.example', port: 15_443 }]);
    const consumer = await startMesh('globex', []);
    await introduce(owner, consumer);
    await shareDatabase(owner, 'terminate');
    await inside.ask({ do: 'serve', name: 'database', address: '10.70.2.1', port: 5432 });
    let answer: string[] | undefined = ['10.71.9.9'];
    const lookUp = async (name: string) => {
      expect(name).toBe('ingress.acme.example');
      if (answer === undefined) throw new Error('no nameserver answers');
      return { addresses: answer, ttlSeconds: 0 };
    };
    const ownerXds = await serve(inside, 'east', owner.client);
    const consumerXds = await serve(inside, 'west', consumer.client, { lookUp });
    inside.startEnvoy(ownerXds.folder, 'ingress', await ownerXds.bootstrap('ingress', 'gate'));
    inside.startEnvoy(consumerXds.folder, 'sidecar', await consumerXds.bootstrap('sidecar', 'web'));
    const find = async () => {
      const { items } = await consumer.client.list<PeerService>(peerServiceType, { namespace });
      return items.find(({ status }) => status?.ips?.length);
    };
    const service = await until('the service is shared', find);
    await settled(ownerXds, 'ingress~east~gate', 1);
    await settled(consumerXds, 'sidecar~west~web', 2);
    const ask = () => inside.ask({ do: 'get', to: `http://${service.status!.ips![0]}:15443/` }) as Promise<string>;
    const isServed = async () => (await ask()) === 'database';
    expect(await isServed()).toBe(false);

    const measured = async (isWanted: () => Promise<boolean>) => {
      const startMs = performance.now();
      await until('the name is followed', async () => ((await isWanted()) ? true : undefined));
      return performance.now() - startMs;
    };
    answer = ['10.70.1.1'];
    const movedMs = await measured(isServed);
    answer = undefined;
    await pause(11_000);
    expect(await isServed()).toBe(true);
    answer = ['127.0.0.1'];
    const programmed = async () =>
      (await find())?.status?.conditions?.find(({ type, status }) => type === 'Programmed' && status === 'False');
    const withheldMs = await measured(async () => (await programmed()) !== undefined);
    expect((await programmed())!.message).toContain('127.0.0.1 is a special address');
    expect(await isServed()).toBe(false);
    answer = ['127.0.0.1', '10.70.1.1'];
    const backMs = await measured(isServed);
    for (const ms of [movedMs, withheldMs, backMs]) expect(ms).toBeLessThan(wantedMs);
  }, 90_000);
});
