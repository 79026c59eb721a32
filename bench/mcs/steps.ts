// The three changes that a person sees, each timed until the last cluster has it: a ServiceExport becomes an import, an
// endpoint becomes part of its slice, and an export that is deleted leaves neither import nor slice anywhere.

import { service, serviceExport, slice } from '../../sim/manifests.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { type Figure, percentile } from '../report.ts';
import { handFed, pause } from './clusterset.ts';
import { type Copies, watchCopies } from './copies.ts';

/** Lets what follows a change, such as conditions and the merged view, pass before the next one is timed. */
const restMs = 150;

export async function measureSteps(
  clusters: readonly { readonly client: Client }[],
  { name, rounds }: { readonly name: string; readonly rounds: number },
): Promise<Figure[]> {
  const copies = await watchCopies(clusters);
  const timesMs: StepTimes[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const { client } = clusters[round % clusters.length]!;
    const endpoint = `10.201.${Math.floor(round / 250)}.${1 + (round % 250)}`;
    timesMs.push(await oneLife(client, copies, { service: `step${round}`, endpoint }));
  }
  copies.stop();
  return [
    ...bothOf(`${name}: export -> import in the last cluster`, timesMs, 'exportMs'),
    ...bothOf(`${name}: endpoint -> slice in the last cluster`, timesMs, 'endpointMs'),
    ...bothOf(`${name}: unexport -> gone from the last cluster`, timesMs, 'unexportMs'),
  ];
}

interface StepTimes {
  readonly exportMs: number;
  readonly endpointMs: number;
  readonly unexportMs: number;
}

async function oneLife(
  client: Client,
  copies: Copies,
  { service: name, endpoint }: { readonly service: string; readonly endpoint: string },
): Promise<StepTimes> {
  const key = `shop/${name}`;
  await client.create(serviceType, service(key, handFed));
  await client.create(endpointSliceType, slice(key, { endpoints: ['10.1.0.1'] }));
  await pause(restMs);
  const exportMs = await timed(
    () => client.create(serviceExportType, serviceExport(key)),
    () => copies.everywhere(name, ({ isImported }) => isImported),
  );
  await copies.everywhere(name, ({ slices }) => slices.length > 0);
  await pause(restMs);
  const { metadata, endpoints } = slice(key, { endpoints: [endpoint] });
  const endpointMs = await timed(
    () => client.patch(endpointSliceType, metadata, { kind: 'merge', body: { endpoints } }),
    () => copies.everywhere(name, ({ slices }) => slices[0]?.endpoints?.[0]?.addresses?.[0] === endpoint),
  );
  await pause(restMs);
  const unexportMs = await timed(
    () => client.delete(serviceExportType, { namespace: 'shop', name }),
    () => copies.everywhere(name, ({ isImported, slices }) => !isImported && slices.length === 0),
  );
  return { exportMs, endpointMs, unexportMs };
}

/** The wait begins with the request: a change may be everywhere before its own answer is read. */
async function timed(change: () => Promise<unknown>, arrival: () => Promise<void>): Promise<number> {
  const beganMs = performance.now();
  const arrived = arrival().then(() => performance.now() - beganMs);
  await change();
  return arrived;
}

function bothOf(name: string, timesMs: readonly StepTimes[], step: keyof StepTimes): Figure[] {
  const sorted = timesMs.map((times) => times[step]).sort((a, b) => a - b);
  return [
    { name: `${name}, p50`, value: percentile(sorted, 0.5), unit: 'ms' },
    { name: `${name}, p99`, value: percentile(sorted, 0.99), unit: 'ms' },
  ];
}
