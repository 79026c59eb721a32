// The Service `kubernetes` in namespace `default`, and its slice: how clients inside find the API server. Both are made at the
// start and come back when they are deleted. The port is that of the last start; other fields that somebody has set stay.

import { parseIp } from '../../base/net/ip.ts';
import { type EndpointSlice, endpointSliceType, serviceNameLabel } from '../../kube/objects/endpoint-slice.ts';
import type { AnyObject, KubernetesObject } from '../../kube/objects/object.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import type { Engine } from '../model/call.ts';
import { keyPrefixOf } from '../model/kind.ts';
import { StatusError } from '../model/status.ts';
import { objectKey } from '../model/stored.ts';
import { type Following, followPrefix } from '../store/follow.ts';
import { create } from '../verbs/create.ts';
import { modify } from '../verbs/modify.ts';
import { systemCall } from '../verbs/system-call.ts';

const namespace = 'default';
const name = 'kubernetes';
const portName = 'https';

export interface OwnAddress {
  /** An IP address of this machine. */
  readonly address: string;
  readonly port: number;
  /** Wanted for the Service; another one if somebody holds it. */
  readonly clusterIp: string;
}

export interface OwnService {
  /** Resolves when both are there. */
  announce(own: OwnAddress): Promise<void>;
  stop(): void;
}

export function createOwnService(engine: Engine): OwnService {
  const followings: Following[] = [];
  let isStopped = false;
  let last: Promise<void> = Promise.resolve();
  return {
    announce: async (own) => {
      await ensure(engine, own);
      const { store, world, log } = engine;
      for (const type of [serviceType, endpointSliceType]) {
        const prefix = objectKey(keyPrefixOf(type), namespace, name);
        const onEvent = ({ key, entry }: { key: string; entry: unknown }) => {
          if (key !== prefix || entry !== undefined || isStopped) return;
          last = last
            .then(() => ensure(engine, own))
            .catch((error: unknown) => {
              log.warn('the Service of this API server cannot be written; it comes back at the next start', { error });
            });
        };
        followings.push(await followPrefix({ store, world, log, prefix, onEvent }));
      }
    },
    stop: () => {
      isStopped = true;
      for (const following of followings) following.cancel();
    },
  };
}

async function ensure(engine: Engine, own: OwnAddress): Promise<void> {
  await ensureObject<Service>(engine, serviceType, serviceOf(own), (current, wanted) => {
    current.spec = { ...current.spec, ports: wanted.spec?.ports };
  });
  await ensureObject<EndpointSlice>(engine, endpointSliceType, sliceOf(own), (current, wanted) => {
    current.endpoints = wanted.endpoints;
    current.ports = wanted.ports;
  });
}

async function ensureObject<T extends KubernetesObject>(
  engine: Engine,
  type: { readonly group: string; readonly kind: string },
  wanted: T,
  complete: (current: T, wanted: T) => void,
): Promise<void> {
  const served = engine.registry.findKind(type.group, type.kind);
  if (served === undefined) return;
  const place = { served, namespace, name };
  const tryCreate = (object: unknown) =>
    create(engine, systemCall(engine, { ...place, name: '' }, object as AnyObject));
  try {
    await tryCreate(wanted);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    if (error.reason === 'Invalid') return void (await tryCreate(withoutAddress(wanted)));
    if (error.reason !== 'AlreadyExists') throw error;
    await modify(engine, systemCall(engine, place), {
      part: 'main',
      next: (current) => {
        complete(current as unknown as T, wanted);
        return current;
      },
    });
  }
}

/** The wanted one is held by somebody, or not in the range of cluster IPs. */
function withoutAddress(service: KubernetesObject): KubernetesObject {
  const { clusterIP: _held, ...spec } = (service as Service).spec ?? {};
  return { ...service, spec } as Service;
}

function serviceOf({ port, clusterIp }: OwnAddress): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace, labels: { component: 'apiserver', provider: name } },
    spec: { clusterIP: clusterIp, ports: [{ name: portName, port: 443, protocol: 'TCP', targetPort: port }] },
  } as Service;
}

function sliceOf({ address, port }: OwnAddress): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, namespace, labels: { [serviceNameLabel]: name } },
    addressType: parseIp(address)?.family ?? 'IPv4',
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
    ports: [{ name: portName, port, protocol: 'TCP' }],
  } as EndpointSlice;
}
