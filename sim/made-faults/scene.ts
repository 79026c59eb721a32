// A clusterset of two in which faults are made on purpose, and a person at west who looks at it.

import { generateKeyPairSync } from 'node:crypto';
import { version } from '../../src/base/version.ts';
import { issueCertificate } from '../../src/base/x509/certificates.ts';
import type { Lease } from '../../src/kube/objects/lease.ts';
import { systemNamespace } from '../../src/kube/objects/ours.ts';
import { SimClusterSet } from '../clusterset.ts';
import { type CommandDesk, openDesk } from '../command.ts';
import { type Fault, withFaults } from '../faults.ts';
import { exportService } from '../manifests.ts';
import type { HttpHandler } from '../virtual-network.ts';

const key = 'shop/checkout';
export const ref = { namespace: 'shop', name: 'checkout' };

export interface Scene {
  readonly set: SimClusterSet;
  readonly desk: CommandDesk;
  readonly faults: Fault[];
  /** The answer of every home to /readyz, and the error of its clock. */
  readonly homes: { readyz?: string; clockOffMs: number };
}

/** West's own data plane carries its imports, unless it allocates addresses: then it needs a proxy. */
export async function openScene(clusterSetIP: 'derived' | 'allocate' = 'derived'): Promise<Scene> {
  const faults: Fault[] = [];
  const homes: Scene['homes'] = { clockOffMs: 0 };
  let wallMs = () => 0;
  const wrap = (name: string, handler: HttpHandler): HttpHandler => {
    const faulty = withFaults(faults)(name, handler);
    return async (request) => {
      const date = new Date(wallMs() + homes.clockOffMs).toUTCString();
      if (request.path.startsWith('/readyz') && homes.readyz !== undefined)
        return { status: homes.readyz.includes('[-]') ? 503 : 200, headers: { date }, body: Buffer.from(homes.readyz) };
      const response = await faulty(request);
      return { ...response, headers: { ...response.headers, date } };
    };
  };
  const member = (id: string) =>
    id === 'west'
      ? { clusterSetIP, allowedRanges: ['10.2.0.0/16', '10.101.0.0/16', 'fd00:101::/112'] }
      : { allowedRanges: ['10.1.0.0/16', '10.100.0.0/16', 'fd00:100::/112'] };
  const set = await new SimClusterSet({ clusters: ['east', 'west'], wrap, member }).start({ namespaces: ['shop'] });
  await exportService(set.home('east').admin, key, { endpoints: ['10.1.0.1'] });
  await exportService(set.home('west').admin, key, { endpoints: ['10.2.0.1'] });
  await set.time.advance(20_000);
  const desk = await openDesk(set, 'west');
  wallMs = () => desk.deps.world.clock.wallMs();
  return { set, desk, faults, homes };
}

export function partLease(scene: Scene, part: string, { ageMs = 120_000, theirs = version } = {}): Lease {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name: `portolan-${part}-n1`,
      namespace: systemNamespace,
      labels: { 'portolan.dev/part': part },
      annotations: { 'portolan.dev/node': 'n1', 'portolan.dev/version': theirs },
    },
    spec: {
      leaseDurationSeconds: 30,
      renewTime: new Date(scene.desk.deps.world.clock.wallMs() - ageMs).toISOString(),
    },
  };
}

export function certificate(fromMs: number, toMs: number): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return issueCertificate({
    subject: { commonName: 'test' },
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    use: { kind: 'client' },
    serial: new Uint8Array(16).fill(7),
    notBeforeMs: fromMs,
    notAfterMs: toMs,
  });
}
