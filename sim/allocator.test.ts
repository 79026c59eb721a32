import { describe, expect, test } from 'vitest';
import { type AddressClaim, addressClaimType } from '../src/addresses/address-claim.ts';
import { Allocator, claimsByOwner } from '../src/addresses/allocator.ts';
import { ownerKey } from '../src/addresses/claim.ts';
import { silentLog } from '../src/base/log.ts';
import { parseRange } from '../src/base/net/ip.ts';
import type { Client } from '../src/kube/client/client.ts';
import { createInformer } from '../src/kube/controller/informer.ts';
import { ApiError } from '../src/kube/objects/api-error.ts';
import { SimHome } from './home.ts';
import { Simulation } from './virtual-world.ts';

const holdMs = 60_000;
const owner = (name: string) => ({ kind: 'ServiceImport', namespace: 'shop', name });
const range = (text: string) => parseRange(text)!;

/** `answer` replaces calls of the home. */
async function allocators(count = 1, answer: (home: SimHome) => Partial<Client> = () => ({})) {
  const simulation = new Simulation({ seed: 1 });
  const home = new SimHome({ simulation, name: 'east', serviceRanges: ['10.96.0.0/16'], mayDo: () => true });
  await home.start();
  const client: Client = { ...home.admin, ...answer(home) };
  const all = Array.from({ length: count }, () => {
    const world = simulation.world('agent');
    const indexes = { [claimsByOwner]: (claim: AddressClaim) => [ownerKey(claim.spec.owner)] };
    const claims = createInformer<AddressClaim>({ client: home.admin, world, type: addressClaimType, indexes });
    claims.start();
    const allocator = new Allocator({ home: client, world, log: silentLog, claims, holdMs: () => holdMs });
    return Object.assign(allocator, { stopReading: () => claims.stop() });
  });
  const settle = (ms = 2_000) => simulation.time.advance(ms);
  await settle();
  const claims = async () => (await home.admin.list<AddressClaim>(addressClaimType)).items;
  return { allocator: all[0]!, all, settle, claims, home, simulation };
}

const unbound = { present: [], wishes: [] };

describe('allocator', () => {
  test('allocator: asked twice -> the same address, one claim', async () => {
    const { allocator, settle, claims } = await allocators();
    const request = { owner: owner('a'), range: range('243.0.0.0/12'), ...unbound };
    const first = await allocator.hold(request);
    expect(await allocator.hold(request)).toEqual(first);
    await settle();
    expect(await allocator.hold(request)).toEqual(first);
    expect(await claims()).toHaveLength(1);
  });

  test('allocator: parts of one owner -> an address each, the same again; all are given up with the owner but those kept', async () => {
    const { allocator, settle, claims } = await allocators();
    const hold = async (part?: string) => {
      const held = await allocator.hold({ owner: { ...owner('a'), part }, range: range('243.0.0.0/12'), ...unbound });
      return held.kind === 'held' ? held.address : '';
    };
    const addresses = [await hold(), await hold('east/db-0'), await hold('east/db-1')];
    expect(new Set(addresses).size).toBe(3);
    await settle();
    expect([await hold(), await hold('east/db-0'), await hold('east/db-1')]).toEqual(addresses);
    await allocator.release(owner('a'), addresses.slice(0, 2));
    const held = async () => (await claims()).filter(({ spec }) => spec.releasedAt === undefined).length;
    expect(await held()).toBe(2);
    await settle();
    await allocator.release(owner('a'));
    expect(await held()).toBe(0);
  });

  test('allocator: two processes and one address, at the same moment -> one of them gets it, the other goes without', async () => {
    const { all, claims } = await allocators(2);
    const results = await Promise.all(
      all.map((one, index) => one.hold({ owner: owner(`s${index}`), range: range('243.0.0.7/32'), ...unbound })),
    );
    expect(results.map(({ kind }) => kind).sort()).toEqual(['exhausted', 'held']);
    expect(await claims()).toHaveLength(1);
  });

  test('allocator: many owners in a small range -> each its own address, then exhausted', async () => {
    const { allocator } = await allocators();
    const held: string[] = [];
    for (let index = 0; index < 14; index += 1) {
      const result = await allocator.hold({ owner: owner(`s${index}`), range: range('243.0.0.0/28'), ...unbound });
      if (result.kind === 'held') held.push(result.address);
    }
    expect(new Set(held).size).toBe(14);
    const last = await allocator.hold({ owner: owner('late'), range: range('243.0.0.0/28'), ...unbound });
    expect(last).toEqual({ kind: 'exhausted' });
  });

  test('allocator: a wish that is free -> granted; that somebody has -> another address', async () => {
    const { allocator } = await allocators();
    const wish = { range: range('243.0.0.0/12'), present: [], wishes: ['243.1.2.3'] };
    expect(await allocator.hold({ owner: owner('a'), ...wish })).toEqual({ kind: 'held', address: '243.1.2.3' });
    const other = await allocator.hold({ owner: owner('b'), ...wish });
    expect(other).toMatchObject({ kind: 'held' });
    expect(other).not.toEqual({ kind: 'held', address: '243.1.2.3' });
  });

  test('allocator: a claim in force -> outranks what the object was edited to', async () => {
    const { allocator, settle } = await allocators();
    const before = await allocator.hold({ owner: owner('a'), range: range('243.0.0.0/12'), ...unbound });
    await settle();
    const edited = { owner: owner('a'), range: range('243.0.0.0/12'), present: ['243.9.9.9'], wishes: [] };
    expect(await allocator.hold(edited)).toEqual(before);
  });

  test('allocator: released -> kept for its owner for the hold time, then free for others', async () => {
    const { allocator, settle, claims } = await allocators();
    const one = range('243.0.0.7/32');
    await allocator.hold({ owner: owner('a'), range: one, ...unbound });
    await settle();
    await allocator.release(owner('a'));
    await settle();
    expect(await allocator.hold({ owner: owner('b'), range: one, ...unbound })).toEqual({ kind: 'exhausted' });
    expect(await allocator.sweep()).toBeGreaterThan(0);
    expect(await allocator.hold({ owner: owner('a'), range: one, ...unbound })).toMatchObject({ kind: 'held' });
    await settle();
    expect((await claims())[0]?.spec.releasedAt).toBeUndefined();
    await allocator.release(owner('a'));
    await settle(holdMs + 2_000);
    await allocator.sweep();
    await settle();
    expect(await claims()).toEqual([]);
    expect(await allocator.hold({ owner: owner('b'), range: one, ...unbound })).toMatchObject({ kind: 'held' });
  });

  test('allocator: released, then wanted again with a wish -> the reserved address comes before the wish', async () => {
    const { allocator, settle } = await allocators();
    const wide = range('243.0.0.0/12');
    const before = await allocator.hold({ owner: owner('a'), range: wide, ...unbound });
    await settle();
    await allocator.release(owner('a'));
    await settle();
    const again = await allocator.hold({ owner: owner('a'), range: wide, present: [], wishes: ['243.9.9.9'] });
    expect(again).toEqual(before);
  });

  test('allocator: a claim that our copy does not show yet, of somebody else and of our own -> passed over, taken back', async () => {
    const { all, settle, claims } = await allocators(2);
    const pair = { range: range('243.0.0.6/31'), ...unbound };
    const [first, second] = [
      await all[0]!.hold({ owner: owner('a'), ...pair }),
      await all[1]!.hold({ owner: owner('b'), ...pair }),
    ];
    expect(new Set([first, second]).size).toBe(2);
    expect(await all[1]!.hold({ owner: owner('a'), ...pair })).toEqual(first);
    await settle();
    expect(await claims()).toHaveLength(2);
  });

  test('allocator: a home that does not answer -> the error comes through, and no address is called held', async () => {
    const { allocator, home } = await allocators();
    home.kill();
    const asked = allocator.hold({ owner: owner('a'), range: range('243.0.0.0/28'), ...unbound });
    await expect(asked).rejects.toThrow();
  });

  test('allocator: swept while its owner takes it back -> the owner keeps it', async () => {
    const { all, settle, claims } = await allocators(2);
    const one = range('243.0.0.7/32');
    await all[0]!.hold({ owner: owner('a'), range: one, ...unbound });
    await settle();
    await all[0]!.release(owner('a'));
    await settle(holdMs + 2_000);
    const [taken] = await Promise.all([all[0]!.hold({ owner: owner('a'), range: one, ...unbound }), all[1]!.sweep()]);
    expect(taken.kind).toBe('held');
    expect(await claims()).toHaveLength(1);
  });

  test('allocator: release with addresses to keep -> only the others are released', async () => {
    const { allocator, settle, claims } = await allocators();
    const v4 = await allocator.hold({ owner: owner('a'), range: range('243.0.0.0/12'), ...unbound });
    const v6 = await allocator.hold({ owner: owner('a'), range: range('fd70:6f72:74f3::/64'), ...unbound });
    await settle();
    if (v4.kind !== 'held' || v6.kind !== 'held') throw new Error('no address');
    await allocator.release(owner('a'), [v6.address]);
    const released = (await claims()).filter(({ spec }) => spec.releasedAt !== undefined);
    expect(released.map(({ spec }) => spec.address)).toEqual([v4.address]);
  });

  test('allocator: an own claim that our copy does not show -> held, and not written again', async () => {
    const { all, settle, claims } = await allocators(2);
    const one = range('243.0.0.7/32');
    all[1]!.stopReading();
    const held = await all[0]!.hold({ owner: owner('a'), range: one, ...unbound });
    await settle();
    const before = await claims();
    expect(await all[1]!.hold({ owner: owner('a'), range: one, ...unbound })).toEqual(held);
    expect(await all[1]!.hold({ owner: owner('b'), range: one, ...unbound })).toEqual({ kind: 'exhausted' });
    expect(await claims()).toEqual(before);
  });

  test('allocator: a home that refuses the claim -> the error comes through', async () => {
    const create = async () => {
      throw new ApiError('no claims for you', { code: 403, reason: 'Forbidden' });
    };
    const { allocator } = await allocators(1, () => ({ create }));
    const asked = allocator.hold({ owner: owner('a'), range: range('243.0.0.0/28'), ...unbound });
    await expect(asked).rejects.toThrow('no claims for you');
  });

  test("allocator: somebody else's claim is swept between our two requests -> the address is ours", async () => {
    let isFirst = true;
    const answer = ({ admin }: SimHome): Partial<Client> => ({
      create: async (type, object) => {
        if (!isFirst) return admin.create(type, object);
        isFirst = false;
        throw new ApiError('it was there', { code: 409, reason: 'AlreadyExists' });
      },
    });
    const { allocator, claims } = await allocators(1, answer);
    const one = range('243.0.0.7/32');
    expect(await allocator.hold({ owner: owner('a'), range: one, ...unbound })).toMatchObject({ kind: 'held' });
    expect(await claims()).toHaveLength(1);
  });

  test('allocator: a sweep -> claims in force stay, and one whose hold time ends this very moment goes', async () => {
    const { allocator, settle, claims, simulation } = await allocators();
    for (const name of ['a', 'b']) {
      await allocator.hold({ owner: owner(name), range: range('243.0.0.0/28'), ...unbound });
    }
    await settle();
    await allocator.release(owner('a'));
    await settle();
    const releasedMs = Date.parse((await claims()).find(({ spec }) => spec.releasedAt !== undefined)!.spec.releasedAt!);
    const nowMs = () => simulation.world('reader').clock.wallMs();
    await settle(releasedMs + holdMs - 1 - nowMs());
    expect(await allocator.sweep()).toBe(1);
    await settle(1);
    expect(await allocator.sweep()).toBeUndefined();
    expect((await claims()).map(({ spec }) => spec.owner.name)).toEqual(['b']);
  });

  test('allocator: a sweep by an old copy -> a claim that was taken back stays', async () => {
    const { all, settle, claims } = await allocators(2);
    const one = range('243.0.0.7/32');
    await all[0]!.hold({ owner: owner('a'), range: one, ...unbound });
    await settle();
    await all[0]!.release(owner('a'));
    await settle();
    all[1]!.stopReading();
    await all[0]!.hold({ owner: owner('a'), range: one, ...unbound });
    await settle(holdMs + 2_000);
    expect(await all[1]!.sweep()).toBeUndefined();
    expect(await claims()).toHaveLength(1);
  });

  test('allocator: a home that refuses to delete a claim -> the error of the sweep comes through', async () => {
    const refused = async () => {
      throw new ApiError('no deletions for you', { code: 403, reason: 'Forbidden' });
    };
    const { allocator, settle } = await allocators(1, () => ({ delete: refused }));
    await allocator.hold({ owner: owner('a'), range: range('243.0.0.7/32'), ...unbound });
    await settle();
    await allocator.release(owner('a'));
    await settle(holdMs + 2_000);
    await expect(allocator.sweep()).rejects.toThrow('no deletions for you');
  });
});
