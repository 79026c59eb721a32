// For this folder's tests: homes in this process that can be cut off, refuse a token, and a world whose time runs faster.

import type { HttpTransport } from '../../../base/http.ts';
import { createRealWorld } from '../../../base/real/world.ts';
import type { World } from '../../../base/world.ts';
import { bundledDefinitions } from '../../../home/definitions/bundled.ts';
import { createTestApi, type TestApi } from '../../../home/testing/test-api.ts';
import type { DashboardHome } from '../../homes/home-watch.ts';

export interface TestHome {
  readonly home: DashboardHome;
  readonly api: TestApi;
  isCut: boolean;
  isTokenRefused: boolean;
  /** Requests that it got. */
  requests: number;
}

export async function createTestHome(name: string): Promise<TestHome> {
  const api = await createTestApi({ definitions: bundledDefinitions() });
  return {
    home: { name, access: { server: `https://${name}` } },
    api,
    isCut: false,
    isTokenRefused: false,
    requests: 0,
  };
}

/** The objects of a cluster that has joined. */
export async function joinTestHome({ api, home }: TestHome): Promise<void> {
  await api.ok('POST /api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  await api.ok('POST /apis/about.k8s.io/v1beta1/clusterproperties', {
    apiVersion: 'about.k8s.io/v1beta1',
    kind: 'ClusterProperty',
    metadata: { name: 'cluster.clusterset.k8s.io' },
    spec: { value: home.name },
  });
}

export async function exportIn({ api }: TestHome, name: string): Promise<void> {
  await api.ok('POST /apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceexports', {
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceExport',
    metadata: { name, namespace: 'shop' },
  });
}

export function fastWorld(homes: readonly TestHome[], speed: number): World {
  const world = createRealWorld();
  const startMs = world.clock.monotonicMs();
  return {
    ...world,
    clock: {
      wallMs: () => world.clock.wallMs(),
      monotonicMs: () => startMs + speed * (world.clock.monotonicMs() - startMs),
    },
    timers: { after: (delayMs, run) => world.timers.after(delayMs / speed, run) },
    network: { http: ({ server }) => transportTo(homes.find(({ home }) => home.access.server === server)!) },
  };
}

function transportTo(home: TestHome): HttpTransport {
  return {
    send: async (request) => {
      home.requests += 1;
      if (home.isCut) throw new Error(`${home.home.name}: connection refused`);
      if (home.isTokenRefused) return { status: 401, headers: {}, body: Buffer.from('{"kind":"Status","code":401}') };
      const response = await home.api.api.handle(request);
      if (response.body instanceof Uint8Array) return response;
      return { ...response, body: untilCut(home, response.body) };
    },
    close: () => {},
  };
}

/** A stream of a home that is cut off breaks. */
async function* untilCut(home: TestHome, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  try {
    let next = iterator.next();
    for (;;) {
      const tick = new Promise<'tick'>((resolve) => setTimeout(() => resolve('tick'), 20));
      const first = await Promise.race([next, tick]);
      if (home.isCut || home.isTokenRefused) throw new Error(`${home.home.name}: connection reset`);
      if (first === 'tick') continue;
      if (first.done) return;
      yield first.value;
      next = iterator.next();
    }
  } finally {
    await iterator.return?.();
  }
}
