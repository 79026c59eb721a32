// Everything that goes to the broker and lies there, byte by byte: nothing tells what a sealed export is.

import { expect, test } from 'vitest';
import { exportToAnnotation, sealAnnotation, serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { SimClusterSet } from '../clusterset.ts';
import { importLine } from '../look.ts';
import { service, serviceExport, slice } from '../manifests.ts';
import { confirmKeys, sealingSet } from '../sealing.ts';
import type { HttpHandler } from '../virtual-network.ts';

const ids = ['east', 'west', 'north'];
const rare = ['qqledgerqq', '47113', '47114', '10.77.66.55', 'qqportqq', 'qqhostqq', 'qqlabelqq', 'qqnoteqq'];

/** Keeps all that passes. */
function recorder() {
  const seen: Buffer[] = [];
  const keep = (content: string | Uint8Array | undefined) => {
    if (content !== undefined) seen.push(Buffer.from(content as Uint8Array));
  };
  const wrap =
    (handler: HttpHandler): HttpHandler =>
    async (request) => {
      keep(JSON.stringify([request.method, request.path, request.headers]));
      keep(request.body as Uint8Array | undefined);
      const response = await handler(request);
      if (response.body instanceof Uint8Array) {
        keep(response.body);
        return response;
      }
      const { body } = response;
      const told = (async function* () {
        for await (const chunk of body) {
          keep(chunk);
          yield chunk;
        }
      })();
      return { ...response, body: told };
    };
  return { wrap, content: () => Buffer.concat(seen) };
}

function bytesIn(row: object): Uint8Array[] {
  return Object.values(row).map((value) =>
    value instanceof Uint8Array ? value : Buffer.from(JSON.stringify(value) ?? ''),
  );
}

async function life(annotations: Record<string, string>) {
  const { wrap, content } = recorder();
  const set = await new SimClusterSet({
    ...{ clusters: ids, set: sealingSet },
    wrap: (home, handler) => (home === 'broker' ? wrap(handler) : handler),
  }).start({ namespaces: ['qqshopqq'] });
  await set.time.advance(15_000);
  await confirmKeys(set, ids);
  const key = 'qqshopqq/qqledgerqq';
  const { admin } = set.home('east');
  const ports = [{ name: 'qqportqq', port: 47113 }];
  await admin.create(serviceType, service(key, { ports }));
  const options = {
    endpoints: ['qqhostqq@10.77.66.55'],
    ports: [{ name: 'qqportqq', protocol: 'TCP' as const, port: 47114 }],
  };
  await admin.create(endpointSliceType, slice(key, options));
  const spec = { exportedLabels: { qqlabelqq: 'yes' }, exportedAnnotations: { 'qqnoteqq.example/a': 'yes' } };
  await admin.create(serviceExportType, serviceExport(key, { annotations, spec }));
  await set.time.advance(15_000);
  const imports = await Promise.all(ids.map((id) => importLine(set.home(id).admin, key)));
  // Other states of it: a change, a conflict at the reader, an agent that starts anew, a removed export.
  await admin.patch(
    endpointSliceType,
    { namespace: 'qqshopqq', name: 'qqledgerqq-a' },
    { kind: 'merge', body: { endpoints: [] } },
  );
  await set.home('west').admin.create(serviceType, service(key, { ports: [{ name: 'qqportqq', port: 80 }] }));
  await set.home('west').admin.create(
    serviceExportType,
    serviceExport(key, {
      annotations: { ...annotations, ...(annotations[sealAnnotation] ? { [exportToAnnotation]: 'east' } : {}) },
    }),
  );
  await set.time.advance(15_000);
  set.killAgent('east');
  set.startAgent('east');
  await set.time.advance(15_000);
  const rows = [...set.broker.backup().rows.values()];
  await admin.delete(serviceExportType, { namespace: 'qqshopqq', name: 'qqledgerqq' });
  await set.time.advance(15_000);
  const all = Buffer.concat([content(), ...rows.flatMap(bytesIn), ...set.broker.snapshot()]);
  return { found: [...rare, 'qqshopqq'].filter((word) => all.includes(word)), imports, bytes: all.length };
}

test('sealed for west -> requests, answers, watches, disk and snapshot of the broker hold no name, port, address or label', async () => {
  const { found, imports, bytes } = await life({ [sealAnnotation]: 'true', [exportToAnnotation]: 'west' });
  expect(imports[1]).toContain('qqportqq:47113/TCP from east');
  expect(imports[2]).toBe('none');
  expect(bytes).toBeGreaterThan(50_000);
  expect(found).toEqual([]);
});

test('limited to west, in the open -> the same search finds all of them', async () => {
  const { found } = await life({ [exportToAnnotation]: 'west' });
  expect(found.sort()).toEqual([...rare, 'qqshopqq'].sort());
});
