// Copies what lies at the broker to a member's home: external services and hostname generators that are visible here, and
// the Secrets that they share. Everything at home is read at home, so it goes on while the broker is away. Runs in the
// agent that leads.

import { isSameJson } from '../../base/json.ts';
import { errorText, type Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import { deleteIfPresent, getOrUndefined } from '../../kube/client/absent.ts';
import { apply, replaceWith } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { runController } from '../../kube/controller/loop.ts';
import { isForbidden, isNotFound } from '../../kube/objects/api-error.ts';
import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import { externalNamespace, managedByLabel, managerName } from '../../kube/objects/ours.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { hostnameGeneratorType } from '../kinds/hostname-generator.ts';
import {
  copyName,
  type MeshExternalService,
  meshExternalServiceType,
  originLabel,
} from '../kinds/mesh-external-service.ts';
import { planCopy } from '../rules/copy.ts';
import { sharesSecrets } from '../rules/target.ts';
import { secretReferences } from '../rules/tls-plan.ts';
import { type Place, visibilityIn } from '../rules/visibility.ts';

export interface BrokerCopiesOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  readonly broker: Client;
  /** At home. */
  readonly namespace: string;
  readonly place: Place;
}

export interface BrokerCopies {
  stop(): Promise<void>;
}

const originSelector = `${originLabel}=broker`;
/** Secrets are not watched at the broker: members may read the shared ones alone, one by one. */
const secretsAgainMs = 300_000;

export function runBrokerCopies(options: BrokerCopiesOptions): BrokerCopies {
  const { world, home, broker, namespace, place } = options;
  const log = options.log.with({ part: 'copies of external services' });
  const originals = [meshExternalServiceType, hostnameGeneratorType].map((type) => ({
    type,
    there: createInformer({ client: broker, world, log, type, namespace: place.clusterset }),
    here: createInformer({ client: home, world, log, type, namespace, labelSelector: originSelector }),
  }));
  const controllers = originals.map(({ type, there, here }) => {
    const ownNames = (key: string) => [key.slice(key.indexOf('/') + 1)];
    const copyNames = (key: string) => ownNames(key).map((name) => name.replace(/\.broker$/, ''));
    const reconcile = async (name: string) => {
      const original = there.get(`${place.clusterset}/${name}`);
      const present = here.get(`${namespace}/${copyName(name)}`);
      const wanted = original && visibleCopy(original);
      if (wanted === undefined) {
        if (present !== undefined) await deleteIfPresent(home, type, present.metadata);
        return undefined;
      }
      const shared = type === meshExternalServiceType ? await shareSecrets(wanted as MeshExternalService) : false;
      await apply({ client: home, type, present, change: replaceWith(wanted) });
      return shared ? { requeueAfterMs: secretsAgainMs } : undefined;
    };
    const sources = [
      { informer: there, keysOf: ownNames },
      { informer: here, keysOf: copyNames },
    ];
    const controller = runController({ name: `copies-of-${type.plural}`, world, log, sources, reconcile });
    here.onReturn(() => {
      for (const key of there.keys()) controller.queue.add(ownNames(key)[0]!);
    });
    return controller;
  });

  function visibleCopy(original: KubernetesObject): KubernetesObject | undefined {
    const copy = planCopy(original, namespace);
    return visibilityIn(place, copy).isVisible ? copy : undefined;
  }

  /** Whether it shares any. */
  async function shareSecrets(copy: MeshExternalService): Promise<boolean> {
    if (!sharesSecrets(copy)) return false;
    const names = new Set(secretReferences(copy.spec?.destination?.tls).map(({ name }) => name));
    for (const name of names) await copySecret(name);
    return names.size > 0;
  }

  async function copySecret(name: string): Promise<void> {
    const ref = { namespace: externalNamespace, name: copyName(name) };
    const there = await broker.get<Secret>(secretType, { namespace: place.clusterset, name }).catch((error) => {
      if (!isNotFound(error) && !isForbidden(error)) throw error;
      log.warn('shared secret cannot be read at the broker', { secret: name, error: errorText(error) });
      return undefined;
    });
    if (there === undefined) return;
    const present = await getOrUndefined<Secret>(home, secretType, ref);
    if (present !== undefined && isSameJson(present.data, there.data)) return;
    const labels = { [managedByLabel]: managerName, [originLabel]: 'broker' };
    const wanted: Secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { ...ref, labels },
      type: 'Opaque',
      data: there.data ?? {},
    };
    await apply({ client: home, type: secretType, present, change: replaceWith(wanted) });
  }

  for (const { there, here } of originals) for (const informer of [there, here]) informer.start();
  return {
    stop: async () => {
      for (const { there, here } of originals)
        for (const informer of [there, here] as Informer<unknown>[]) informer.stop();
      await Promise.all(controllers.map((controller) => controller.stop()));
    },
  };
}

/** Copies that an earlier membership left have no owner. */
export async function removeCopies(home: Client, namespace: string): Promise<void> {
  const copies: [ResourceType, string][] = [
    [meshExternalServiceType, namespace],
    [hostnameGeneratorType, namespace],
    [secretType, externalNamespace],
  ];
  for (const [type, inNamespace] of copies) {
    const { items } = await home.list(type, { namespace: inNamespace, labelSelector: originSelector });
    for (const item of items) await deleteIfPresent(home, type, item.metadata);
  }
}
