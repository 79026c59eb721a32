import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import type { Random } from '../../base/world.ts';
import { createTestApi, type TestApi, TestTime } from '../testing/test-api.ts';
import { builtinKinds } from './index.ts';

const path = '/api/v1/namespaces/default/services';
const prefix = '/portolan/addresses/service/';

async function start(serviceRanges: string[], random: Random = new TestTime().world.random): Promise<TestApi> {
  return createTestApi({ kinds: builtinKinds({ serviceRanges, random }) });
}

function body(name: string, spec: object = {}): object {
  return { metadata: { name }, spec: { ports: [{ port: 80 }], ...spec } };
}

async function held({ store }: TestApi): Promise<string[]> {
  const { entries } = await store.range({ prefix });
  return entries.map(({ key, value }) => `${key.slice(prefix.length)} ${Buffer.from(value)}`);
}

function causes(reply: { body: { details?: { causes?: { field: string; message: string }[] } } }): string[] {
  return (reply.body.details?.causes ?? []).map(({ field, message }) => `${field}: ${message}`);
}

/** Numbers that are spread as real ones are, and the same in each run. */
function evenRandom(): Random {
  let state = 1;
  const float = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  return { ...new TestTime().world.random, float };
}

describe('service kind: cluster IPs', () => {
  test('created -> an address of the range, held in its name', async () => {
    const api = await start(['10.96.0.0/16']);
    const { spec } = await api.ok(`POST ${path}`, body('web'));
    expect(spec).toMatchObject({
      clusterIP: expect.stringMatching(/^10\.96\./),
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
    });
    expect(spec.clusterIPs).toEqual([spec.clusterIP]);
    expect(await held(api)).toEqual([expect.stringMatching(/^IPv4\/0a60[0-9a-f]{4} default\/web$/)]);
  });

  test('dual stack -> one address of each family, the preferred one first', async () => {
    const api = await start(['fd00:96::/112', '10.96.0.0/16']);
    const { spec } = await api.ok(`POST ${path}`, body('web', { ipFamilyPolicy: 'RequireDualStack' }));
    expect(spec.clusterIPs).toEqual([expect.stringMatching(/^fd00:96::/), expect.stringMatching(/^10\.96\./)]);
    expect(await held(api)).toHaveLength(2);
  });

  test('deleted -> the address is free again', async () => {
    const api = await start(['10.96.0.0/16']);
    await api.ok(`POST ${path}`, body('web'));
    await api.ok(`DELETE ${path}/web`);
    expect(await held(api)).toEqual([]);
  });

  test('kept by a finalizer -> the address is kept too, until the Service goes', async () => {
    const api = await start(['10.96.0.0/16']);
    await api.ok(`POST ${path}`, { ...body('web'), metadata: { name: 'web', finalizers: ['example.com/a'] } });
    await api.ok(`DELETE ${path}/web`);
    expect(await held(api)).toHaveLength(1);
    await api.ok(
      `PATCH ${path}/web`,
      { metadata: { finalizers: null } },
      { 'content-type': 'application/merge-patch+json' },
    );
    expect(await held(api)).toEqual([]);
  });

  test('replaced without an address -> it stays, and nothing is written if nothing else changed', async () => {
    const api = await start(['10.96.0.0/16']);
    const before = await api.ok(`POST ${path}`, body('web'));
    const after = await api.ok(`PUT ${path}/web`, body('web'));
    expect(after).toEqual(before);
    const changed = await api.ok(`PUT ${path}/web`, body('web', { ports: [{ port: 81 }] }));
    expect(changed.spec.clusterIP).toBe(before.spec.clusterIP);
    expect(await held(api)).toHaveLength(1);
  });

  test('to ExternalName -> given back; and from it -> a new one', async () => {
    const api = await start(['10.96.0.0/16']);
    await api.ok(`POST ${path}`, body('web'));
    const merge = { 'content-type': 'application/merge-patch+json' };
    const external = await api.ok(
      `PATCH ${path}/web`,
      { spec: { type: 'ExternalName', externalName: 'x.example' } },
      merge,
    );
    expect(external.spec).not.toHaveProperty('clusterIP');
    expect(await held(api)).toEqual([]);
    const again = await api.ok(`PATCH ${path}/web`, { spec: { type: 'ClusterIP', externalName: null } }, merge);
    expect(again.spec.clusterIP).toMatch(/^10\.96\./);
    expect(await held(api)).toHaveLength(1);
  });

  test('from two families to one -> the second address is given back', async () => {
    const api = await start(['10.96.0.0/16', 'fd00:96::/112']);
    await api.ok(`POST ${path}`, body('web', { ipFamilyPolicy: 'PreferDualStack' }));
    const merge = { 'content-type': 'application/merge-patch+json' };
    const single = await api.ok(`PATCH ${path}/web`, { spec: { ipFamilyPolicy: 'SingleStack' } }, merge);
    expect(single.spec.clusterIPs).toHaveLength(1);
    expect(await held(api)).toEqual([expect.stringContaining('IPv4/')]);
  });

  test('headless -> no address', async () => {
    const api = await start(['10.96.0.0/16']);
    const { spec } = await api.ok(`POST ${path}`, body('web', { clusterIP: 'None', selector: { a: 'b' } }));
    expect(spec).toMatchObject({ clusterIP: 'None', clusterIPs: ['None'], ipFamilies: ['IPv4'] });
    expect(await held(api)).toEqual([]);
  });

  test('an address asked for -> given, in its one form', async () => {
    const api = await start(['fd00:96::/112']);
    const { spec } = await api.ok(`POST ${path}`, body('web', { clusterIP: 'FD00:96:0::0:7' }));
    expect(spec.clusterIPs).toEqual(['fd00:96::7']);
  });

  test.each([
    [
      '10.96.0.7',
      'spec.clusterIPs: Invalid value: ["10.96.0.7"]: failed to allocate IP 10.96.0.7: provided IP is already allocated',
    ],
    ['10.97.0.7', 'The range of valid IPs is 10.96.0.0/24'],
    ['10.96.0.0', 'is not in the valid range'],
    ['10.96.0.255', 'is not in the valid range'],
    ['fd00::1', 'spec.clusterIPs[0]: Invalid value: "fd00::1": IPv6 is not configured on this cluster'],
  ])('%s asked for when it cannot be had -> %s', async (clusterIP, text) => {
    const api = await start(['10.96.0.0/24']);
    await api.ok(`POST ${path}`, body('first', { clusterIP: '10.96.0.7' }));
    const reply = await api.send(`POST ${path}`, body('second', { clusterIP }));
    expect(reply.status).toBe(422);
    expect(causes(reply)).toEqual([expect.stringContaining(text)]);
    expect(await held(api)).toHaveLength(1);
  });

  test('another address on update -> refused', async () => {
    const api = await start(['10.96.0.0/24']);
    await api.ok(`POST ${path}`, body('web', { clusterIP: '10.96.0.7' }));
    const reply = await api.send(`PUT ${path}/web`, body('web', { clusterIP: '10.96.0.8' }));
    expect(causes(reply)).toEqual(['spec.clusterIPs[0]: Invalid value: ["10.96.0.8"]: may not change once set']);
  });

  test('a small range -> every address is found, then it says that it is full, then one given back is found', async () => {
    const api = await start(['10.96.0.0/28']);
    const addresses = new Set<string>();
    for (let index = 0; index < 14; index += 1) {
      const { spec } = await api.ok(`POST ${path}`, body(`web-${index}`));
      addresses.add(spec.clusterIP);
    }
    expect(addresses.size).toBe(14);
    const full = await api.send(`POST ${path}`, body('one-more'));
    expect(full.status).toBe(422);
    expect(causes(full)).toEqual([expect.stringContaining('range is full: every address of 10.96.0.0/28 is held')]);
    await api.ok(`DELETE ${path}/web-9`);
    await api.ok(`POST ${path}`, body('one-more'));
  });

  test('a guess that never hits -> the one free address is found by counting', async () => {
    // Always the same guess: the address after the first.
    const random: Random = { float: () => 0, bytes: (count) => new Uint8Array(count), uuid: () => '' };
    const api = await start(['10.96.0.0/24'], random);
    for (let index = 0; index < 254; index += 1) await api.ok(`POST ${path}`, body(`web-${index}`));
    expect(await held(api)).toHaveLength(254);
    await api.ok(`DELETE ${path}/web-200`);
    const { spec } = await api.ok(`POST ${path}`, body('again'));
    expect(spec.clusterIP).toMatch(/^10\.96\.0\./);
    expect((await api.send(`POST ${path}`, body('no-more'))).status).toBe(422);
  });

  test('many at once -> no address is held twice', async () => {
    const api = await start(['10.96.0.0/26']);
    const replies = await Promise.all(
      Array.from({ length: 62 }, (_, index) => api.ok(`POST ${path}`, body(`web-${index}`))),
    );
    expect(new Set(replies.map(({ spec }) => spec.clusterIP)).size).toBe(62);
  });

  test('many at once in a range that is nearly full -> what is free is given out, the others are told, none fights long', async () => {
    const api = await start(['10.96.0.0/18'], evenRandom());
    const taken = Array.from({ length: 2 ** 14 - 2 - 100 }, (_, index) => ({
      key: `${prefix}IPv4/0a60${(index + 1).toString(16).padStart(4, '0')}`,
      value: Buffer.from('default/other'),
    }));
    await api.store.commit({ compares: [], writes: taken });
    const commits = vi.spyOn(api.store, 'commit');
    const createAll = (name: string) =>
      Promise.all(Array.from({ length: 64 }, (_, index) => api.send(`POST ${path}`, body(`${name}-${index}`))));
    const replies = [...(await createAll('first')), ...(await createAll('second'))];
    const given = replies.filter(({ status }) => status === 201).map((reply) => reply.body.spec.clusterIP);
    expect(new Set(given).size).toBe(100);
    const refused = replies.filter(({ status }) => status !== 201);
    expect(refused.flatMap(causes)).toEqual(Array(28).fill(expect.stringContaining('range is full')));
    expect(commits.mock.calls.length).toBeLessThan(3 * 128);
  });

  test('dry run -> an address is shown and none is held', async () => {
    const api = await start(['10.96.0.0/16']);
    const { spec } = await api.ok(`POST ${path}?dryRun=All`, body('web'));
    expect(spec.clusterIP).toMatch(/^10\.96\./);
    expect(await held(api)).toEqual([]);
  });

  test('a range that is none -> said when the server starts', async () => {
    await expect(start(['10.96.0.0'])).rejects.toThrow('service range "10.96.0.0": not a CIDR');
    await expect(start(['10.96.0.0/31'])).rejects.toThrow('too small');
  });

  test('any sequence of creates, updates and deletes -> exactly the addresses that Services have are held', async () => {
    const step = fc.record({
      name: fc.constantFrom('a', 'b', 'c'),
      what: fc.constantFrom('create', 'delete', 'external', 'single', 'dual', 'replace'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const api = await start(['10.96.0.0/28', 'fd00:96::/124']);
        for (const { name, what } of steps) await take(api, name, what);
        const { items } = await api.ok(`GET ${path}`);
        const wanted = items.flatMap((item: { metadata: { name: string }; spec: { clusterIPs?: string[] } }) =>
          (item.spec.clusterIPs ?? []).map(() => `default/${item.metadata.name}`),
        );
        expect((await held(api)).map((line) => line.split(' ')[1]).sort()).toEqual(wanted.sort());
      }),
      { numRuns: 25 },
    );
  });
});

async function take(api: TestApi, name: string, what: string): Promise<void> {
  const merge = { 'content-type': 'application/merge-patch+json' };
  if (what === 'create') await api.send(`POST ${path}`, body(name));
  if (what === 'delete') await api.send(`DELETE ${path}/${name}`);
  if (what === 'replace') await api.send(`PUT ${path}/${name}`, body(name));
  if (what === 'external') {
    await api.send(`PATCH ${path}/${name}`, { spec: { type: 'ExternalName', externalName: 'x.example' } }, merge);
  }
  const policy = what === 'single' ? 'SingleStack' : 'PreferDualStack';
  if (what === 'single' || what === 'dual') {
    await api.send(`PATCH ${path}/${name}`, { spec: { type: 'ClusterIP', ipFamilyPolicy: policy } }, merge);
  }
}
