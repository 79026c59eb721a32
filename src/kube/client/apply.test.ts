import { beforeEach, describe, expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import { isConflict } from '../objects/api-error.ts';
import { type ConfigMap, configMapType } from '../objects/config-map.ts';
import { deleteIfPresent, getOrUndefined } from './absent.ts';
import { type ApplyRequest, apply, createIfAbsent, install, isAsWanted, mergeInto, replaceWith } from './apply.ts';
import type { Client } from './client.ts';

const ref = { namespace: 'default', name: 'settings' };
let sim: Simulation;
/** A second client, whose requests are not counted. */
let other: Client;
let client: Client;
let requests: string[];

function settings(data: Record<string, string>, labels?: Record<string, string>): ConfigMap {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: labels ? { ...ref, labels } : { ...ref }, data };
}

beforeEach(async () => {
  sim = new Simulation({ seed: 1 });
  const home = await startHome(sim);
  other = home.clientOf(sim.world('other'));
  const plain = home.clientOf(sim.world('writer'));
  requests = [];
  const counted = <F extends keyof Client>(verb: F) => {
    const send = plain[verb] as (...args: unknown[]) => unknown;
    return (...args: unknown[]) => {
      requests.push(verb);
      return send(...args);
    };
  };
  client = { ...plain, get: counted('get'), create: counted('create'), update: counted('update') } as Client;
});

const settle = <T>(work: Promise<T>): Promise<T> => sim.time.settle(work) as Promise<T>;
const made = (object: ConfigMap) => settle(other.create<ConfigMap>(configMapType, object));
const stored = () => settle(getOrUndefined<ConfigMap>(other, configMapType, ref));

function applied(request: Pick<ApplyRequest<ConfigMap>, 'present' | 'change' | 'onConflict' | 'beforeUpdate'>) {
  return settle(apply<ConfigMap>({ client, type: configMapType, ...request }));
}

describe('apply', () => {
  test('apply: nothing is there -> created, without a read', async () => {
    const { outcome } = await applied({ present: undefined, change: replaceWith(settings({ a: '1' })) });
    expect({ outcome, requests }).toEqual({ outcome: 'created', requests: ['create'] });
  });

  test('apply: the copy is as wanted -> no request', async () => {
    const present = await made(settings({ a: '1' }));
    const { outcome, object } = await applied({ present, change: replaceWith(settings({ a: '1' })) });
    expect({ outcome, requests, isSame: object === present }).toEqual({
      outcome: 'unchanged',
      requests: [],
      isSame: true,
    });
  });

  test('apply: the copy differs -> one update, the hook called before', async () => {
    const present = await made(settings({ a: '1' }));
    const seen: unknown[] = [];
    const beforeUpdate = async (there: ConfigMap) => void seen.push(there.data);
    await applied({ present, change: replaceWith(settings({ a: '2' })), beforeUpdate });
    expect({ requests, seen, data: (await stored())?.data }).toEqual({
      requests: ['update'],
      seen: [{ a: '1' }],
      data: { a: '2' },
    });
  });

  test('apply: the home has it, the copy does not -> read, then compared like any other', async () => {
    await made(settings({ a: '1' }));
    const { outcome } = await applied({ present: undefined, change: replaceWith(settings({ a: '1' })) });
    expect({ outcome, requests }).toEqual({ outcome: 'unchanged', requests: ['create', 'get'] });
  });

  test('apply: the copy is old -> the conflict is thrown, and what the other wrote stays', async () => {
    const present = await made(settings({ a: '1' }));
    await settle(other.update(configMapType, { ...present, data: { a: 'theirs' } }));
    const failure = await applied({ present, change: replaceWith(settings({ a: '2' })) }).catch((error) => error);
    expect(isConflict(failure)).toBe(true);
    expect((await stored())?.data).toEqual({ a: 'theirs' });
  });

  test('apply: the copy is old, retry -> read once, and the change made on what is there', async () => {
    const present = await made(settings({ a: '1' }));
    await settle(other.update(configMapType, { ...present, data: { a: '1', theirs: 'x' } }));
    const change = (there: ConfigMap | undefined) => ({ ...there!, data: { ...there?.data, a: '2' } });
    const { outcome } = await applied({ present, change, onConflict: 'retry' });
    expect({ outcome, requests, data: (await stored())?.data }).toEqual({
      outcome: 'updated',
      requests: ['update', 'get', 'update'],
      data: { a: '2', theirs: 'x' },
    });
  });

  test('apply: deleted since it was read, retry -> created', async () => {
    const present = await made(settings({ a: '1' }));
    await settle(other.delete(configMapType, ref));
    const { outcome } = await applied({ present, change: replaceWith(settings({ a: '2' })), onConflict: 'retry' });
    expect({ outcome, requests }).toEqual({ outcome: 'created', requests: ['update', 'get', 'create'] });
  });

  test('apply: somebody writes before every attempt -> the conflict is thrown after five', async () => {
    const present = await made(settings({ a: '1' }));
    let count = 0;
    const race = (there: ConfigMap | undefined) => ({ ...there!, data: { mine: String((count += 1)) } });
    const racing = { ...client, update: () => client.update(configMapType, present) } as Client;
    await settle(other.update(configMapType, { ...present, data: { a: 'theirs' } }));
    const request = { client: racing, type: configMapType, present, change: race, onConflict: 'retry' as const };
    expect(isConflict(await settle(apply<ConfigMap>(request)).catch((error) => error))).toBe(true);
    expect(count).toBe(5);
  });

  test('apply: the change refuses what was read -> its error, nothing written', async () => {
    await made(settings({ owner: 'somebody' }));
    const change = (there: ConfigMap | undefined) => {
      if (there !== undefined) throw new Error('taken');
      return settings({ owner: 'us' });
    };
    await expect(applied({ present: undefined, change, onConflict: 'retry' })).rejects.toThrow('taken');
    expect((await stored())?.data).toEqual({ owner: 'somebody' });
  });
});

describe('what a change keeps', () => {
  const present: ConfigMap & { status?: unknown } = {
    ...settings({ a: '1', b: '2' }, { ours: 'old', theirs: 'x' }),
    status: { phase: 'Ready' },
  };
  const wanted = settings({ a: '2' }, { ours: 'new' });

  test('replaceWith: named labels and the body are replaced, status and other metadata stay', () => {
    const metadata = { ...present.metadata, annotations: { n: 'x' }, finalizers: ['f'], uid: 'u' };
    expect(replaceWith(wanted)({ ...present, metadata })).toEqual({
      ...wanted,
      metadata: { ...metadata, labels: { ours: 'new' } },
      status: { phase: 'Ready' },
    });
  });

  test('replaceWith: a status in what is wanted is never written over the one that is there', () => {
    const withStatus = { ...wanted, status: { phase: 'Wrong' } } as ConfigMap;
    expect(replaceWith(withStatus)(present)).toMatchObject({ status: { phase: 'Ready' } });
    expect(isAsWanted(wanted, withStatus)).toBe(true);
  });

  test('replaceWith: empty labels against none at all -> as wanted', () => {
    expect(isAsWanted(settings({ a: '1' }), settings({ a: '1' }, {}))).toBe(true);
  });

  test('mergeInto: keys of others stay in labels and spec, other fields are replaced', () => {
    const there = { ...present, spec: { theirs: 1, ours: 1 } } as ConfigMap;
    expect(mergeInto({ ...wanted, spec: { ours: 2 } } as ConfigMap)(there)).toEqual({
      ...there,
      metadata: { ...ref, labels: { ours: 'new', theirs: 'x' } },
      data: { a: '2' },
      spec: { theirs: 1, ours: 2 },
    });
  });
});

test('mergeInto: an undefined field -> not named, the present value stays', () => {
  const there = { ...settings({ a: '1' }, { ours: 'x' }), spec: { region: 'eu' } } as ConfigMap;
  const wanted = { ...settings({ a: '2' }), data: undefined, spec: { region: undefined, zone: 'a' } };
  const merged = mergeInto<ConfigMap>(wanted as ConfigMap)(there);
  expect(merged).toEqual({ ...there, spec: { region: 'eu', zone: 'a' } });
});

test('install: twice -> once', async () => {
  const wanted = { type: configMapType, object: settings({ a: '1' }, { ours: 'x' }) };
  const outcomes = [await settle(install(client, wanted)), await settle(install(client, wanted))];
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(['created', 'unchanged']);
});

test('createIfAbsent: it is there -> left as it is, whatever is wanted', async () => {
  await made(settings({ owner: 'somebody' }));
  const { outcome, object } = await settle(createIfAbsent(client, configMapType, settings({ owner: 'us' })));
  expect({ outcome, data: object.data, requests }).toEqual({
    outcome: 'unchanged',
    data: { owner: 'somebody' },
    requests: ['get'],
  });
});

test('deleteIfPresent: not there -> false; made anew since it was read -> stays', async () => {
  expect(await settle(deleteIfPresent(client, configMapType, ref))).toBe(false);
  const old = await made(settings({ a: '1' }));
  await settle(other.delete(configMapType, ref));
  await made(settings({ a: 'anew' }));
  const failure = await settle(deleteIfPresent(client, configMapType, old.metadata)).catch((error) => error);
  expect(isConflict(failure)).toBe(true);
  expect(await settle(deleteIfPresent(client, configMapType, ref))).toBe(true);
});
