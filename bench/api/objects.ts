// The objects that are written and read: ConfigMaps as the plain counterpart of a put, and Services, which cost the
// most.

import type { Connection } from '../../test/support/api-process.ts';
import { sleep } from './load.ts';

export const services = '/api/v1/namespaces/bench/services';
const slices = '/apis/discovery.k8s.io/v1/namespaces/bench/endpointslices';
const configMaps = '/api/v1/namespaces/bench/configmaps';

export function configMap(name: string) {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'bench', labels: { app: name, team: 'bench' } },
    data: { settings: 'x'.repeat(200) },
  };
}

function service(name: string) {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'bench', labels: { app: name, team: 'bench' } },
    spec: {
      selector: { app: name },
      ports: [
        { name: 'http', port: 80, targetPort: 8080 },
        { name: 'metrics', port: 9090 },
      ],
    },
  };
}

/** Creates objects under names of its own, one with every call. */
export function creator(connection: Connection, kind: 'ConfigMap' | 'Service', prefix: string): () => Promise<void> {
  const [path, make] = kind === 'Service' ? [services, service] : [configMaps, configMap];
  let count = 0;
  return async () => {
    count += 1;
    const name = `${prefix}-${count}`;
    const { status, body } = await connection.request('POST', path, make(name));
    if (status !== 201) throw new Error(`create ${kind} ${name}: ${status} ${body}`);
  };
}

export async function createNamespace(connection: Connection): Promise<void> {
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'bench' } };
  const { status, body } = await connection.request('POST', '/api/v1/namespaces', namespace);
  if (status !== 201) throw new Error(`create namespace bench: ${status} ${body}`);
}

export function reader(connection: Connection, path: string): () => Promise<void> {
  return async () => {
    const { status, body } = await connection.request('GET', path);
    if (status !== 200) throw new Error(`get ${path}: ${status} ${body}`);
  };
}

/** The controller that makes endpoints has caught up. */
export async function untilEachHasSlices(connection: Connection): Promise<void> {
  for (let tries = 0; tries < 900; tries += 1) {
    if ((await countOf(connection, slices)) >= (await countOf(connection, services))) return;
    await sleep(200);
  }
  throw new Error('bench: some Services had no EndpointSlice after three minutes');
}

async function countOf(connection: Connection, path: string): Promise<number> {
  const { body } = await connection.request('GET', `${path}?limit=1`);
  const { items, metadata } = JSON.parse(body.toString());
  return items.length + (metadata.remainingItemCount ?? 0);
}
