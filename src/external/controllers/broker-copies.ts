// Copies what lies at the broker to a member's home: external services and hostname generators that are visible here, and
// the Secrets that they share. Everything at home is read at home, so it goes on while the broker is away. Runs in the
// agent that leads.

import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import { deleteIfPresent } from '../../kube/client/absent.ts';
import { apply, replaceWith } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { runController } from '../../kube/controller/loop.ts';
import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import { externalNamespace } from '../../kube/objects/ours.ts';
import { secretType } from '../../kube/objects/secret.ts';
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
import { externalServiceErrors } from '../rules/validation/external-service.ts';
import { type Place, visibilityIn } from '../rules/visibility.ts';
import { bySharedSecret, runSharedSecrets } from './shared-secrets.ts';

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

export function runBrokerCopies(options: BrokerCopiesOptions): BrokerCopies {
  const { world, home, broker, namespace, place } = options;
  const log = options.log.with({ part: 'copies of external services' });
  const originals = [meshExternalServiceType, hostnameGeneratorType].map((type) => ({
    type,
    there: createInformer({
      ...{ client: broker, world, log, type, namespace: place.clusterset },
      indexes: type === meshExternalServiceType ? { [bySharedSecret]: sharedBy } : {},
    }),
    here: createInformer({ client: home, world, log, type, namespace, labelSelector: originSelector }),
  }));
  const secrets = runSharedSecrets({
    ...{ world, log, home, broker, namespace: place.clusterset, sharedBy },
    services: originals[0]!.there as unknown as Informer<KubernetesObject>,
  });
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
      if (type === meshExternalServiceType) for (const secret of sharedBy(original!)) await secrets.copy(secret);
      await apply({ client: home, type, present, change: replaceWith(wanted) });
      return undefined;
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

  /** Nothing for one that would be refused, whatever its shape. */
  function sharedBy(original: KubernetesObject): Set<string> {
    const copy = visibleCopy(original) as MeshExternalService | undefined;
    if (copy === undefined || !sharesSecrets(copy) || externalServiceErrors(copy).length > 0) return new Set();
    return new Set(secretReferences(copy.spec.destination?.tls).map(({ name }) => name));
  }

  for (const { there, here } of originals) for (const informer of [there, here]) informer.start();
  return {
    stop: async () => {
      for (const { there, here } of originals)
        for (const informer of [there, here] as Informer<unknown>[]) informer.stop();
      await Promise.all([secrets, ...controllers].map((one) => one.stop()));
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
