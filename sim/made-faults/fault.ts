// One fault made on purpose: how it is made and mended, and what status, doctor and conditions have to say of it meanwhile.

import type { Code } from '../../src/doctor/codes.ts';
import { leaseType } from '../../src/kube/objects/lease.ts';
import type { AnyObject, ResourceType } from '../../src/kube/objects/object.ts';
import { systemNamespace } from '../../src/kube/objects/ours.ts';
import { partLease, type Scene } from './scene.ts';

export interface MadeFault {
  /** For the table in docs/faults.md. */
  readonly fault: string;
  readonly code: Code;
  /** `subject: message` of doctor's finding. */
  readonly says: RegExp;
  readonly doctorExit: number;
  /** The same as doctor's if absent. */
  readonly statusExit?: number;
  /** Where status ends with an error: its text. Where it looks at something else: the line. */
  readonly statusSays?: RegExp;
  /** Conditions of this object while the fault lasts, and what one of them has to be; without `are` they are only shown. */
  readonly conditions?: { readonly of: Watched; readonly are?: RegExp; readonly note?: string };
  readonly make: (scene: Scene) => Promise<void>;
  readonly mend: (scene: Scene) => Promise<void>;
}

export interface Watched {
  readonly at: 'home' | 'broker';
  readonly type: ResourceType;
  readonly ref: { readonly namespace?: string; readonly name: string };
}

type Making = Pick<MadeFault, 'make' | 'mend'>;

export function silentPart(part: string): Making {
  return {
    make: async (scene) => void (await scene.desk.home.create(leaseType, partLease(scene, part))),
    mend: async ({ desk }) =>
      void (await desk.home.delete(leaseType, { namespace: systemNamespace, name: `portolan-${part}-n1` })),
  };
}

const adminUrl = 'http://127.0.0.1:9001';

/** A part whose admin endpoint answers through its home. The fault is one answer, mended is another. */
export function answeringPart(
  part: string,
  faulty: object,
  fine: object | ((scene: Scene) => Promise<object>),
): Making {
  const serve = ({ set }: Scene, answer: object) =>
    set.simulation.network.listen(adminUrl, async () => ({
      status: 200,
      headers: { 'content-type': 'application/json', 'portolan-part': 'n1_a' },
      body: Buffer.from(JSON.stringify(answer)),
    }));
  return {
    make: async (scene) => {
      serve(scene, faulty);
      const lease = partLease(scene, part, { ageMs: 0 });
      const annotations = { ...lease.metadata.annotations, 'portolan.dev/admin': adminUrl };
      const spec = { ...lease.spec, holderIdentity: 'n1_a', leaseDurationSeconds: 3600 };
      await scene.desk.home.create(leaseType, { ...lease, metadata: { ...lease.metadata, annotations }, spec });
    },
    mend: async (scene) => serve(scene, typeof fine === 'function' ? await fine(scene) : fine),
  };
}

interface ObjectManifest {
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec?: object;
  readonly data?: object;
}

/** An object that exists while the fault does; `status` is written after it. */
export function objectThere(
  at: 'home' | 'broker',
  type: ResourceType,
  manifest: ObjectManifest,
  status?: object,
): Making {
  const clientOf = ({ desk, set }: Scene) => (at === 'home' ? desk.home : set.broker.admin);
  const apiVersion = type.group === '' ? type.version : `${type.group}/${type.version}`;
  return {
    make: async (scene) => {
      const client = clientOf(scene);
      await client.create(type, { apiVersion, kind: type.kind, ...manifest } as unknown as AnyObject);
      const patch = { kind: 'merge', body: { status } } as const;
      if (status !== undefined) await client.patch(type, manifest.metadata, patch, { subresource: 'status' });
    },
    mend: async (scene) => void (await clientOf(scene).delete(type, manifest.metadata)),
  };
}

export function thenWait({ make, mend }: Making, waitMs = 10_000): Making {
  return {
    make: async (scene) => {
      await make(scene);
      await scene.set.time.advance(waitMs);
    },
    mend,
  };
}

/** Every request of one process is refused while the fault lasts. */
export function refusing(home: string, what: { method?: string; path: string; from: string; code: number }): Making {
  return {
    make: async ({ faults, set }) => {
      faults.push({ home, method: 'GET', ...what, times: Number.POSITIVE_INFINITY });
      await set.time.advance(1_000);
    },
    mend: async ({ faults, set }) => {
      faults.splice(0);
      await set.time.advance(60_000);
    },
  };
}
