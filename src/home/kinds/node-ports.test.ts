import { describe, expect, test } from 'vitest';
import type { Random } from '../../base/world.ts';
import { createTestApi, type TestApi, TestTime } from '../testing/test-api.ts';
import { builtinKinds } from './index.ts';

const path = '/api/v1/namespaces/default/services';
const prefix = '/portolan/addresses/node-port/';
const merge = { 'content-type': 'application/merge-patch+json' };

async function start(random: Random = new TestTime().world.random): Promise<TestApi> {
  return createTestApi({ kinds: builtinKinds({ serviceRanges: ['10.96.0.0/16'], random }) });
}

function body(name: string, spec: object = {}): object {
  return { metadata: { name }, spec: { type: 'NodePort', ports: [{ port: 80 }], ...spec } };
}

async function held({ store }: TestApi): Promise<string[]> {
  const { entries } = await store.range({ prefix });
  return entries.map(({ key, value }) => `${key.slice(prefix.length)} ${Buffer.from(value)}`);
}

function causes(reply: { body: { details?: { causes?: { field: string; message: string }[] } } }): string[] {
  return (reply.body.details?.causes ?? []).map(({ field, message }) => `${field}: ${message}`);
}

const nodePorts = (service: { spec: { ports: { nodePort?: number }[] } }) =>
  service.spec.ports.map(({ nodePort }) => nodePort);

describe('service kind: node ports', () => {
  test.each(['NodePort', 'LoadBalancer'])(
    '%s -> one of the range, held in its name; deleted -> free again',
    async (type) => {
      const api = await start();
      const [port] = nodePorts(await api.ok(`POST ${path}`, body('web', { type })));
      expect(port).toBeGreaterThanOrEqual(30_000);
      expect(port).toBeLessThanOrEqual(32_767);
      expect(await held(api)).toEqual([`${port} default/web`]);
      await api.ok(`DELETE ${path}/web`);
      expect(await held(api)).toEqual([]);
    },
  );

  test.each([
    { type: 'ClusterIP' },
    { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false },
    { type: 'ExternalName', externalName: 'x.example' },
  ])('%j -> none', async (spec) => {
    const api = await start();
    expect(nodePorts(await api.ok(`POST ${path}`, body('web', spec)))).toEqual([undefined]);
    expect(await held(api)).toEqual([]);
  });

  test('one that another Service has, or out of the range -> refused, and nothing is held', async () => {
    const api = await start();
    await api.ok(`POST ${path}`, body('first', { ports: [{ port: 80, nodePort: 30_080 }] }));
    const reply = await api.send(`POST ${path}`, body('second', { ports: [{ port: 80, nodePort: 30_080 }] }));
    expect(reply.status).toBe(422);
    expect(causes(reply)).toEqual(['spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated']);
    const outside = await api.send(`POST ${path}`, body('second', { ports: [{ port: 80, nodePort: 8080 }] }));
    expect(causes(outside)).toEqual([
      'spec.ports[0].nodePort: Invalid value: 8080: provided port is not in the valid range. The range of valid ports is 30000-32767',
    ]);
    expect(await held(api)).toEqual(['30080 default/first']);
  });

  test('TCP and UDP of one port -> the same number; another port -> another one', async () => {
    const api = await start();
    const ports = [
      { port: 53, name: 'a', protocol: 'TCP' },
      { port: 53, name: 'b', protocol: 'UDP' },
      { port: 54, name: 'c' },
    ];
    const [tcp, udp, other] = nodePorts(await api.ok(`POST ${path}`, body('dns', { ports })));
    expect(udp).toBe(tcp);
    expect(other).not.toBe(tcp);
    expect(await held(api)).toHaveLength(2);
  });

  test('replaced without node ports -> they stay, and nothing is written if nothing else changed', async () => {
    const api = await start();
    const before = await api.ok(`POST ${path}`, body('web'));
    expect(await api.ok(`PUT ${path}/web`, body('web'))).toEqual(before);
    const ports = [
      { port: 80, name: 'a' },
      { port: 81, name: 'b' },
    ];
    const after = await api.ok(`PUT ${path}/web`, body('web', { ports }));
    expect(nodePorts(after)[0]).toBe(nodePorts(before)[0]);
    expect(await held(api)).toHaveLength(2);
    await api.ok(`PUT ${path}/web`, body('web'));
    expect(await held(api)).toEqual([`${nodePorts(before)[0]} default/web`]);
  });

  test('changed to another number, then to ClusterIP -> what it had is free', async () => {
    const api = await start();
    await api.ok(`POST ${path}`, body('web', { ports: [{ port: 80, nodePort: 30_080 }] }));
    await api.ok(`PUT ${path}/web`, body('web', { ports: [{ port: 80, nodePort: 30_081 }] }));
    expect(await held(api)).toEqual(['30081 default/web']);
    await api.ok(`PATCH ${path}/web`, { spec: { type: 'ClusterIP' } }, merge);
    expect(await held(api)).toEqual([]);
  });

  test('a Service of an earlier version -> keeps any number, and holds one of the range from its next update on', async () => {
    const api = await start();
    await api.ok(`POST ${path}`, body('old', { ports: [{ port: 80, nodePort: 30_080 }] }));
    const { entries } = await api.store.range({ prefix: '/registry/core/services/default/old' });
    const stored = JSON.parse(Buffer.from(entries[0]!.value).toString('utf8'));
    stored.spec.ports = [
      { ...stored.spec.ports[0], nodePort: 30_090 },
      { port: 81, name: 'b', protocol: 'TCP', targetPort: 81, nodePort: 81 },
    ];
    stored.spec.ports[0].name = 'a';
    const writes = [{ key: entries[0]!.key, value: Buffer.from(JSON.stringify(stored)) }, { key: `${prefix}30080` }];
    await api.store.commit({ compares: [], writes });
    const after = await api.ok(`PATCH ${path}/old`, { metadata: { labels: { a: 'b' } } }, merge);
    expect(nodePorts(after)).toEqual([30_090, 81]);
    expect(await held(api)).toEqual(['30090 default/old']);
  });

  test('a guess that never hits -> a free port is found by looking; all taken -> refused', async () => {
    const random: Random = { float: () => 0, bytes: (count) => new Uint8Array(count), uuid: () => '' };
    const api = await start(random);
    const taken = Array.from({ length: 2767 }, (_, index) => ({
      key: `${prefix}${30_000 + index}`,
      value: Buffer.from('default/other'),
    }));
    await api.store.commit({ compares: [], writes: taken });
    expect(nodePorts(await api.ok(`POST ${path}`, body('web')))).toEqual([32_767]);
    const full = await api.send(`POST ${path}`, body('more'));
    expect(causes(full)).toEqual([expect.stringContaining('every port of 30000-32767 is held')]);
  });

  test('many at once -> no port twice', async () => {
    const api = await start();
    const replies = await Promise.all(
      Array.from({ length: 60 }, (_, index) => api.ok(`POST ${path}`, body(`web-${index}`))),
    );
    expect(new Set(replies.flatMap(nodePorts)).size).toBe(60);
  });
});
