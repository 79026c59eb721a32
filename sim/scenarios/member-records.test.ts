import { describe, expect, test } from 'vitest';
import { endpointShardType } from '../../src/clusterset/kinds/endpoint-shard.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { type ServiceShard, serviceShardType } from '../../src/clusterset/kinds/service-shard.ts';
import { endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { SimClusterSet } from '../clusterset.ts';
import { importLine, sliceLines } from '../look.ts';
import { exportService, slice } from '../manifests.ts';

const key = 'shop/checkout';

/** A set whose members may read no records while `isRefused` says so. */
async function startSet(lines: string[] = []) {
  const right = { isRefused: false };
  const set = new SimClusterSet({
    clusters: ['a', 'b'],
    onLog: (line) => lines.push(line),
    wrap: (home, handler) => async (request) => {
      const isRecord =
        home === 'broker' && /\/(serviceshards|endpointshards|heartbeats|livenessreports)\b/.test(request.path);
      if (!right.isRefused || !isRecord || request.method !== 'GET') return handler(request);
      const failure = { reason: 'Forbidden', message: 'you may not list serviceshards', code: 403 };
      const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', ...failure };
      return { status: 403, headers: {}, body: Buffer.from(JSON.stringify(status)) };
    },
  });
  await set.start({ namespaces: ['shop'] });
  return { set, right };
}

describe('records of members', () => {
  test('records: the broker lets no member read them -> imports stay, the log says what to do; granted -> up to date', async () => {
    const lines: string[] = [];
    const { set, right } = await startSet(lines);
    const [a, b] = ['a', 'b'].map((id) => set.home(id).admin);
    await exportService(a!, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(10_000);
    const before = ['a: 10.1.0.1 on http>8080'];
    expect(await sliceLines(b!, key)).toEqual(before);
    right.isRefused = true;
    set.killAgent('b');
    set.startAgent('b');
    await a!.delete(serviceExportType, { namespace: 'shop', name: 'checkout' });
    await set.time.advance(180_000);
    expect(await sliceLines(b!, key)).toEqual(before);
    expect(await importLine(b!, key)).toContain('from a');
    const warnings = lines.filter((line) => line.includes('run portolan broker init there'));
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain('you may not list serviceshards');
    right.isRefused = false;
    await set.time.advance(60_000);
    expect(await importLine(b!, key)).toBe('none');
  });

  test('records: exported with two slices, and withdrawn -> the shard says how many there are, nothing is left', async () => {
    const { set } = await startSet();
    const a = set.home('a').admin;
    await exportService(a, key, { endpoints: ['10.1.0.1'] });
    await a.create(endpointSliceType, slice(key, { endpoints: ['10.1.0.2'], suffix: 'b' }));
    await set.time.advance(5_000);
    const [shard] = (await set.broker.admin.list<ServiceShard>(serviceShardType)).items;
    expect(shard?.spec.endpointShards).toBe(2);
    await a.delete(serviceExportType, { namespace: 'shop', name: 'checkout' });
    await set.time.advance(5_000);
    expect((await set.broker.admin.list(endpointShardType)).items).toEqual([]);
    expect(await importLine(set.home('b').admin, key)).toBe('none');
  });
});
