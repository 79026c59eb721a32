// Copies of the Secrets that external services at the broker share. A copy is there as long as a service that is visible
// here shares the Secret; after that nobody needs it, and keys should not lie about.

import { isSameJson } from '../../base/json.ts';
import { errorText, type Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import { deleteIfPresent } from '../../kube/client/absent.ts';
import { apply, replaceWith } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { runController } from '../../kube/controller/loop.ts';
import { isForbidden, isNotFound } from '../../kube/objects/api-error.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import { externalNamespace, managedByLabel, managerName } from '../../kube/objects/ours.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { copyName, originLabel, ownName } from '../kinds/mesh-external-service.ts';

export interface SharedSecretsOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  readonly broker: Client;
  /** At the broker. */
  readonly namespace: string;
  /** External services at the broker, with the index `bySharedSecret`. */
  readonly services: Informer<KubernetesObject>;
  /** Names of the Secrets that a service shares with this cluster. */
  readonly sharedBy: (service: KubernetesObject) => Iterable<string>;
}

export interface SharedSecrets {
  /** Makes or renews a copy now: a service is better off when its Secrets are there before it. */
  copy(name: string): Promise<void>;
  stop(): Promise<void>;
}

/** The index of services by the Secrets that they share. */
export const bySharedSecret = 'shared secret';

/** Secrets are not watched at the broker: members may read the shared ones alone, one by one. */
const againMs = 300_000;

export function runSharedSecrets(options: SharedSecretsOptions): SharedSecrets {
  const { world, log, home, broker, namespace, services, sharedBy } = options;
  const copies = createInformer<Secret>({
    ...{ client: home, world, log, type: secretType, namespace: externalNamespace },
    labelSelector: `${originLabel}=broker`,
  });

  async function copy(name: string): Promise<void> {
    const present = copies.get(`${externalNamespace}/${copyName(name)}`);
    const read = await broker.get<Secret>(secretType, { namespace, name }).catch((error: unknown) => {
      if (!isNotFound(error) && !isForbidden(error)) throw error;
      log.warn('shared secret cannot be read at the broker', { secret: name, error: errorText(error) });
      return isNotFound(error) ? 'gone' : 'refused';
    });
    if (read === 'gone' && present !== undefined) await deleteIfPresent(home, secretType, present.metadata);
    if (typeof read === 'string' || (present !== undefined && isSameJson(present.data, read.data))) return;
    const labels = { [managedByLabel]: managerName, [originLabel]: 'broker' };
    const wanted: Secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: copyName(name), namespace: externalNamespace, labels },
      type: 'Opaque',
      data: read.data ?? {},
    };
    await apply({ client: home, type: secretType, present, change: replaceWith(wanted) });
  }

  async function reconcile(name: string): Promise<{ requeueAfterMs: number } | undefined> {
    if (services.byIndex(bySharedSecret, name).length > 0) {
      await copy(name);
      return { requeueAfterMs: againMs };
    }
    const present = copies.get(`${externalNamespace}/${copyName(name)}`);
    if (present !== undefined) await deleteIfPresent(home, secretType, present.metadata);
    return undefined;
  }

  const controller = runController({
    ...{ name: 'copies-of-secrets', world, log, reconcile },
    sources: [
      {
        informer: services,
        keysOf: (_key: string, next?: KubernetesObject, previous?: KubernetesObject) =>
          [next, previous].flatMap((one) => (one === undefined ? [] : [...sharedBy(one)])),
      },
      { informer: copies, keysOf: (_key: string, next?: Secret, previous?: Secret) => [ownName((next ?? previous)!)] },
    ],
  });
  copies.start();
  return {
    copy,
    stop: async () => {
      copies.stop();
      await controller.stop();
    },
  };
}
