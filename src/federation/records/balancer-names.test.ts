import { describe, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import type { LookUp } from '../../base/net/followed-names.ts';
import { FederationTable } from '../../catalog/federation/federation-table.ts';
import { NameTable } from '../../catalog/names/name-table.ts';
import { parseShardRecord } from '../rules/record.ts';
import { BalancerNames } from './balancer-names.ts';

const key = { federation: 'f', namespace: 'shop', service: 'web', cluster: 'east' };

function setUp() {
  const sim = new Simulation({ seed: 1 });
  const answers = new Map<string, string[]>();
  let asked = 0;
  const lookUp: LookUp = async (host) => {
    asked += 1;
    const addresses = answers.get(host);
    if (!addresses) throw new Error(`nobody knows ${host}`);
    return { addresses, ttlSeconds: 30 };
  };
  const table = new FederationTable({ table: new NameTable({ serial: 1 }) });
  const names = new BalancerNames({ sink: table, lookUp, world: sim.world('authority'), log: silentLog });
  const put = (text: string) => names.upsertShard(key, parseShardRecord(text)!);
  const external = () => table.shardsOf('/f/shop/web')[0]?.externalIPs.join();
  return { sim, answers, names, put, external, table, asked: () => asked };
}

const named = '{"clusterIP": "10.0.0.1", "hostnames": ["lb.cloud.example"]}';

describe('load balancers with only a name', () => {
  test('its name is looked up -> its addresses stand for the shard, and follow it [001-26]', async () => {
    const { sim, answers, put, external } = setUp();
    answers.set('lb.cloud.example', ['203.0.113.2', '203.0.113.1']);
    put(named);
    await sim.time.until(() => external() === '203.0.113.1,203.0.113.2', { withinMs: 100 });
    answers.set('lb.cloud.example', ['203.0.113.9']);
    await sim.time.advance(29_000);
    expect(external()).toBe('203.0.113.1,203.0.113.2');
    await sim.time.until(() => external() === '203.0.113.9', { withinMs: 2000 });
  });

  test('the name cannot be looked up any more -> its last addresses stay', async () => {
    const { sim, answers, put, external } = setUp();
    answers.set('lb.cloud.example', ['203.0.113.1']);
    put(named);
    await sim.time.until(() => external() === '203.0.113.1', { withinMs: 100 });
    answers.clear();
    await sim.time.advance(120_000);
    expect(external()).toBe('203.0.113.1');
  });

  test('it gets an address, or goes -> nobody asks any more', async () => {
    const { sim, answers, names, put, external, asked } = setUp();
    answers.set('lb.cloud.example', ['203.0.113.1']);
    put(named);
    await sim.time.until(() => external() === '203.0.113.1', { withinMs: 100 });
    put('{"clusterIP": "10.0.0.1", "externalIP": "198.51.100.1"}');
    await sim.time.advance(120_000);
    expect(external()).toBe('198.51.100.1');
    expect(asked()).toBe(1);
    put(named);
    names.removeShard(key);
    await sim.time.advance(120_000);
    expect(asked()).toBe(2);
    expect(external()).toBeUndefined();
  });

  const addresses = ['203.0.113.1', '10.9.0.1', '169.254.169.254', '127.0.0.1', '::ffff:169.254.169.254', '243.0.0.7'];

  test.each([
    ['no rules, as in records that others wrote', undefined, '10.9.0.1,203.0.113.1,243.0.0.7'],
    ['own virtual ranges', { allowedRanges: [], virtualRanges: ['243.0.0.0/8'] }, '10.9.0.1,203.0.113.1'],
    ['allowed ranges', { allowedRanges: ['203.0.113.0/24'], virtualRanges: [] }, '203.0.113.1'],
    [
      'a range that covers special ones',
      { allowedRanges: ['0.0.0.0/0'], virtualRanges: ['243.0.0.0/8'] },
      '10.9.0.1,203.0.113.1',
    ],
  ])('%s -> the name leads to what the cluster itself may give', async (_what, hostnameRules, expected) => {
    const { sim, answers, put, external } = setUp();
    answers.set('lb.cloud.example', addresses);
    put(JSON.stringify({ ...JSON.parse(named), hostnameRules }));
    await sim.time.advance(100);
    expect(external()).toBe(expected);
  });

  test('its ranges become narrower while the name cannot be looked up -> what they exclude goes at once', async () => {
    const { sim, answers, put, external } = setUp();
    answers.set('lb.cloud.example', ['203.0.113.1', '198.51.100.1']);
    put(named);
    await sim.time.until(() => external() === '198.51.100.1,203.0.113.1', { withinMs: 100 });
    answers.clear();
    const hostnameRules = { allowedRanges: ['203.0.113.0/24'], virtualRanges: [] };
    put(JSON.stringify({ ...JSON.parse(named), hostnameRules }));
    expect(external()).toBe('203.0.113.1');
  });

  test('before the first answer -> left out for other clusters, and said why', async () => {
    const { put, table } = setUp();
    put(named);
    expect(table.leftOutOf('/f/shop/web')).toEqual([
      { what: 'shard in cluster east for other clusters', why: expect.stringContaining('lb.cloud.example') },
    ]);
  });
});
