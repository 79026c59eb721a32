// Keeps the slices of every Service with a selector in step with its Pods. Which Pods a Service has, and which Services a
// Pod belongs to, is looked up in indexes by label: the cost of one change depends on the Service, not on the home.

import { BoundedCache } from '../base/bounded-cache.ts';
import { isSameJson } from '../base/json.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { World } from '../base/world.ts';
import { deleteIfPresent } from '../kube/client/absent.ts';
import type { Client } from '../kube/client/client.ts';
import { confirmOwner } from '../kube/client/confirm-owner.ts';
import { createInformer, type Informer } from '../kube/controller/informer.ts';
import { type Controller, runController } from '../kube/controller/loop.ts';
import {
  type EndpointSlice,
  endpointSliceType,
  serviceNameLabel,
  sliceManagedByLabel,
} from '../kube/objects/endpoint-slice.ts';
import { type Node, nodeType } from '../kube/objects/node.ts';
import { type Pod, podType } from '../kube/objects/pod.ts';
import { type Service, serviceType } from '../kube/objects/service.ts';
import {
  endpointsManager,
  type NodeFacts,
  nodeFacts,
  type PodFacts,
  podFacts,
  type ServiceFacts,
  Shapes,
  selects,
  serviceFacts,
  sliceFacts,
} from './facts.ts';
import { planSlices } from './plan.ts';
import { groupEndpoints } from './pod-endpoint.ts';

export interface EndpointsControllerOptions {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly metrics?: Metrics;
  readonly concurrency?: number;
}

const begunMax = 10_000;

interface Informers {
  readonly services: Informer<ServiceFacts>;
  readonly pods: Informer<PodFacts>;
  readonly nodes: Informer<NodeFacts>;
  readonly slices: Informer<EndpointSlice>;
}

export function runEndpointsController(options: EndpointsControllerOptions): Controller {
  const informers = createInformers(options);
  const begun = new BoundedCache<true>(begunMax);
  const { services, pods, nodes, slices } = informers;
  const controller = runController({
    ...options,
    name: 'endpoints',
    sources: [
      { informer: services },
      { informer: pods, keysOf: (_key, next, previous) => servicesOfPod(services, next, previous) },
      { informer: nodes, keysOf: (name, next, previous) => servicesOfNode(informers, name, { next, previous }) },
      { informer: slices, keysOf: (_key, next, previous) => [serviceKeyOf((next ?? previous)!)] },
    ],
    reconcile: async (key) => {
      await reconcile(options.client, informers, { key, begun });
      return undefined;
    },
  });
  for (const informer of Object.values(informers)) informer.start();
  return {
    ...controller,
    get isRunning() {
      return controller.isRunning;
    },
    stop: async () => {
      for (const informer of Object.values(informers)) informer.stop();
      await controller.stop();
    },
  };
}

function createInformers({ client, world, log }: EndpointsControllerOptions): Informers {
  const common = { client, world, log };
  const shapes = new Shapes();
  const services = createInformer<Service, ServiceFacts>({
    ...common,
    type: serviceType,
    keep: (service) => serviceFacts(service, shapes),
    // By one label of the selector: a Pod that the Service selects has that one too.
    indexes: { selector: ({ namespace, selector }) => [labelKeys(namespace, selector).sort()[0]!] },
  });
  return {
    services,
    pods: createInformer<Pod, PodFacts>({
      ...common,
      type: podType,
      keep: podFacts,
      indexes: {
        label: ({ namespace, labels }) => labelKeys(namespace, labels),
        node: ({ nodeName }) => (nodeName === undefined ? [] : [nodeName]),
      },
    }),
    nodes: createInformer<Node, NodeFacts>({ ...common, type: nodeType, keep: nodeFacts }),
    slices: createInformer<EndpointSlice>({
      ...common,
      type: endpointSliceType,
      labelSelector: `${sliceManagedByLabel}=${endpointsManager}`,
      keep: (slice) => sliceFacts(slice, { service: services.get(serviceKeyOf(slice)), shapes }),
      indexes: { service: (slice) => [serviceKeyOf(slice)] },
    }),
  };
}

function labelKeys(namespace: string, labels: Readonly<Record<string, string>>): string[] {
  // Joined, a text is one piece; as a template it stays a pair of pieces for as long as it is kept.
  return Object.entries(labels).map(([key, value]) => [namespace, '/', key, '=', value].join(''));
}

function serviceKeyOf({ metadata }: EndpointSlice): string {
  return [metadata.namespace, metadata.labels?.[serviceNameLabel] ?? ''].join('/');
}

/** The Services that select the Pod as it is or as it was. None if nothing changed that an endpoint shows. */
function servicesOfPod(services: Informer<ServiceFacts>, ...states: (PodFacts | undefined)[]): Set<string> {
  const keys = new Set<string>();
  if (isSameJson(states[0], states[1])) return keys;
  for (const pod of states) {
    if (pod === undefined) continue;
    for (const labelKey of labelKeys(pod.namespace, pod.labels)) {
      for (const service of services.byIndex('selector', labelKey)) {
        if (selects(service.selector, pod.labels)) keys.add(`${service.namespace}/${service.name}`);
      }
    }
  }
  return keys;
}

interface Work {
  readonly key: string;
  /** Services that had their first slices from here: one that has none any more may be gone. */
  readonly begun: BoundedCache<true>;
}

interface Change<T> {
  readonly next: T | undefined;
  readonly previous: T | undefined;
}

function servicesOfNode({ services, pods }: Informers, name: string, change: Change<NodeFacts>): Iterable<string> {
  if (change.next?.zone === change.previous?.zone) return [];
  return pods.byIndex('node', name).flatMap((pod) => [...servicesOfPod(services, pod)]);
}

async function reconcile(client: Client, informers: Informers, { key, begun }: Work): Promise<void> {
  const service = informers.services.get(key);
  const present = informers.slices.byIndex('service', key);
  if (service === undefined) return removeOrphans(client, present);
  const groups = groupEndpoints({
    service,
    pods: selectedPods(informers.pods, service),
    node: (name) => informers.nodes.get(name),
  });
  const plan = planSlices({ service, groups, present });
  if (present.length === 0 && plan.creates.length > 0) {
    if (begun.get(service.uid)) await confirmOwner(client, serviceType, service);
    else begun.set(service.uid, true);
  }
  // First what is added, last what is removed: readers in between see an endpoint twice rather than not at all.
  for (const slice of plan.creates) await client.create(endpointSliceType, slice);
  for (const slice of plan.updates) await client.update(endpointSliceType, slice);
  for (const slice of plan.deletes) await remove(client, slice);
}

/** Starts from the rarest label of the selector. */
function selectedPods(pods: Informer<PodFacts>, service: ServiceFacts): PodFacts[] {
  let rarest = { labelKey: '', count: Number.POSITIVE_INFINITY };
  for (const labelKey of labelKeys(service.namespace, service.selector)) {
    const count = pods.countByIndex('label', labelKey);
    if (count < rarest.count) rarest = { labelKey, count };
  }
  return pods.byIndex('label', rarest.labelKey).filter((pod) => selects(service.selector, pod.labels));
}

/**
 * The Service has lost its selector, or is gone. In both cases these endpoints follow nothing any more; where the home
 * collects garbage they may be gone already.
 */
async function removeOrphans(client: Client, slices: readonly EndpointSlice[]): Promise<void> {
  for (const slice of slices) await remove(client, slice);
}

async function remove(client: Client, { metadata }: EndpointSlice): Promise<void> {
  const { uid, resourceVersion } = metadata;
  await deleteIfPresent(client, endpointSliceType, metadata, { uid, resourceVersion });
}
