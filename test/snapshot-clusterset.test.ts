// A broker and a member's home are restored from snapshots while agents run: nothing is emptied, addresses and identities stay,
// and everything that was lost is published again. The tests follow each other.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { find, importLine, sliceLines } from '../sim/look.ts';
import { heartbeatType } from '../src/clusterset/kinds/heartbeat.ts';
import { type ServiceImport, serviceImportType } from '../src/clusterset/kinds/service-import.ts';
import { memberNamespace } from '../src/clusterset/rules/broker-layout.ts';
import { endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import type { AnyObject, ResourceType } from '../src/kube/objects/object.ts';
import { type TestHome, until } from './support/clusterset.ts';
import { key, MemberSet, membershipOf, stateOf } from './support/member-set.ts';
import { runPortolan } from './support/portolan.ts';

const members = new MemberSet();
let broker: TestHome;
let east: TestHome;
let west: TestHome;
let north: TestHome;

beforeAll(async () => {
  ({ broker, east, west, north } = await members.startMembers());
  await members.exportCheckout();
});
afterAll(() => members.stop());

const ipsOf = async (home: TestHome) => (await find<ServiceImport>(home.client, serviceImportType, key))?.spec.ips;
const snapshotOf = async (home: TestHome) => {
  const file = members.set.folderOf(`${home.name}.snapshot`);
  const saved = await runPortolan(['snapshot', 'save', file, '--kubeconfig', home.kubeconfig]);
  expect(saved, saved.err).toMatchObject({ code: 0 });
  return file;
};

/** Stops it, restores it, and starts it where others look for it. */
async function restored(home: TestHome, file: string): Promise<{ home: TestHome; out: string }> {
  await home.stop();
  const result = await runPortolan(['snapshot', 'restore', file, '--data', members.set.folderOf(home.name), '--yes']);
  expect(result, result.err).toMatchObject({ code: 0 });
  return { home: await members.set.startHome(home.name, Number(new URL(home.server).port)), out: result.out };
}

/** Deletions of this kind from now on. */
async function deletionsIn(home: TestHome, type: ResourceType): Promise<{ names: string[]; stop(): void }> {
  const names: string[] = [];
  const ending = new AbortController();
  const list = await home.client.list<AnyObject>(type, { namespace: 'shop' });
  const watching = (async () => {
    const events = await home.client.watch<AnyObject>(type, {
      namespace: 'shop',
      resourceVersion: list.metadata.resourceVersion ?? '',
      signal: ending.signal,
    });
    for await (const event of events) if (event.type === 'DELETED') names.push(event.object.metadata.name);
  })();
  watching.catch(() => {});
  return { names, stop: () => ending.abort() };
}

describe('snapshot of a broker', () => {
  test('restored -> addresses, authority and identities as before, lost exports are published again, nothing is emptied', async () => {
    const addresses = await Promise.all([east, west, north].map(ipsOf));
    const identity = await membershipOf(east);
    const tokenBefore = await members.token('south');
    const file = await snapshotOf(broker);
    const usedToken = await members.token('center');
    await members.at(east, 'register shop/later --address 10.1.0.9 --port http=80:8080');
    await members.at(east, 'export shop/later --wait');
    await until('it is imported', async () => (await importLine(north.client, 'shop/later')) !== 'none');
    const watches = await Promise.all(
      [east, west, north].flatMap((home) => [
        deletionsIn(home, serviceImportType),
        deletionsIn(home, endpointSliceType),
      ]),
    );
    const revision = (await broker.client.list(heartbeatType)).metadata.resourceVersion;
    const { home, out } = await restored(broker, file);
    broker = home;
    expect(out).toMatch(/^1 open join tokens are void/m);
    expect(Number((await broker.client.list(heartbeatType)).metadata.resourceVersion)).toBeGreaterThan(
      Number(revision) + 1e9,
    );
    await until('what was lost is published again', async () =>
      (
        await broker.client.list<AnyObject>(
          { ...heartbeatType, plural: 'serviceshards', kind: 'ServiceShard' },
          { namespace: memberNamespace('prod', 'east') },
        )
      ).items.some(({ metadata }) => metadata.name === 'later.shop'),
    );
    await until('heartbeats go on', async () => {
      const { items } = await broker.client.list<AnyObject>(heartbeatType);
      return (
        items.length === 3 && items.every(({ metadata }) => Number(metadata.resourceVersion) > Number(revision) + 1e9)
      );
    });
    for (const agent of members.agents.values()) expect(await stateOf(agent)).toBe('leading');
    expect(await Promise.all([east, west, north].map(ipsOf))).toEqual(addresses);
    expect(await membershipOf(east)).toMatchObject({
      server: identity.server,
      certificateAuthority: identity.certificateAuthority,
    });
    for (const watch of watches) {
      watch.stop();
      expect(watch.names).toEqual([]);
    }
    expect(await sliceLines(north.client, key)).toHaveLength(2);
    for (const token of [tokenBefore, usedToken])
      await expect(
        members.at(
          await members.set.startHome(`joiner-${token.length}-${token.slice(-4)}`),
          `join ${token} --pod-cidr 10.9.0.0/16 --service-cidr 10.96.0.0/12`,
        ),
      ).rejects.toThrow(/does not accept this join token/);
  });
});

describe("snapshot of a member's home", () => {
  test('restored -> the addresses of its imports and its membership as before, its exports stay at the broker', async () => {
    const addresses = await ipsOf(west);
    const identity = await membershipOf(west);
    const file = await snapshotOf(west);
    const atNorth = await deletionsIn(north, endpointSliceType);
    await members.at(west, 'register shop/after --address 10.2.0.9 --port http=80:8080');
    const { home } = await restored(west, file);
    west = home;
    await until('its agent leads', async () => (await stateOf(members.agents.get('west')!)) === 'leading');
    await until('its imports are served', async () => (await sliceLines(west.client, key)).length === 2);
    expect(await ipsOf(west)).toEqual(addresses);
    expect(await membershipOf(west)).toEqual(identity);
    expect(await sliceLines(north.client, key)).toHaveLength(2);
    atNorth.stop();
    expect(atNorth.names).toEqual([]);
  });
});
