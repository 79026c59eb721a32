// Plans the slices behind an import: each slice that a cluster published becomes one slice here, under the merged port
// names and with only the ports and addresses that cluster may serve. Pure.

import { digestOf } from '../../kube/objects/bounded-name.ts';
import {
  type Endpoint,
  type EndpointPort,
  type EndpointSlice,
  endpointSliceType,
  importedServiceNameLabel,
  serviceNameLabel,
  serviceProxyNameLabel,
  sliceManagedByLabel,
  sourceClusterLabel,
} from '../../kube/objects/endpoint-slice.ts';
import { apiVersionOf, type OwnerReference } from '../../kube/objects/object.ts';
import { type Translation, translate } from './address-translation.ts';
import { sliceManager } from './agent-marks.ts';
import { type AddressRules, refusal } from './endpoint-address.ts';
import type { ServiceKey } from './names.ts';
import { remoteEndpoint } from './networks/remote-endpoint.ts';
import {
  endpointLabel,
  type VirtualAddresses,
  virtualAddressesLabel,
  virtualKey,
} from './networks/virtual-endpoints.ts';
import { managedByLabel, manager } from './plan-import.ts';

export interface ImportedSliceRequest {
  readonly service: ServiceKey;
  readonly cluster: string;
  readonly published: EndpointSlice;
  /** The cluster's own port names -> merged names, of the ports it serves. */
  readonly portNames: ReadonlyMap<string, string>;
  /** False marks every endpoint as not ready: the cluster's lease has run out. */
  readonly isTrusted: boolean;
  /** Marks every endpoint as one that is leaving: no new connections, and those that are open go on. */
  readonly isDraining?: boolean;
  readonly rules: AddressRules;
  /** Back to what the addresses are here, for what this very cluster published. */
  readonly translations?: readonly Translation[];
  readonly owner: OwnerReference;
  /** Its addresses mean nothing here: the cluster lies in another network. */
  readonly isOtherNetwork?: boolean;
  /** It has another clusterset address for the service: its gateway is asked by name. */
  readonly isAskedByName?: boolean;
  /** Addresses that endpoints of a headless service in another network have here. */
  readonly virtual?: VirtualAddresses;
  /** The Service of this cluster that they stand behind too, so that its own data plane carries their traffic. */
  readonly derivedService?: string;
}

export function planImportedSlice(request: ImportedSliceRequest): EndpointSlice {
  const { service, cluster, published, owner, virtual } = request;
  const isVirtual = virtual !== undefined;
  const isOtherNetwork = request.isOtherNetwork === true || isVirtual;
  const derivedService = isOtherNetwork ? undefined : request.derivedService;
  const plan = isOtherNetwork ? planRemote : planEndpoint;
  const endpoints = published.endpoints ?? [];
  return {
    apiVersion: apiVersionOf(endpointSliceType),
    kind: endpointSliceType.kind,
    metadata: {
      name: importedSliceName(service, cluster, published.metadata.name),
      namespace: service.namespace,
      labels: {
        [importedServiceNameLabel]: service.name,
        [sourceClusterLabel]: cluster,
        [sliceManagedByLabel]: sliceManager,
        [managedByLabel]: manager,
        ...(derivedService === undefined
          ? { [serviceProxyNameLabel]: manager }
          : { [serviceNameLabel]: derivedService }),
        ...(isVirtual ? { [virtualAddressesLabel]: 'true' } : {}),
      },
      ownerReferences: [owner],
    },
    addressType: isOtherNetwork && !isVirtual ? 'FQDN' : published.addressType,
    endpoints: isVirtual
      ? planVirtual(endpoints, virtual, request)
      : endpoints.map((endpoint) => plan(endpoint, request)).filter((one) => one !== undefined),
    ports: planPorts(published.ports ?? [], request.portNames),
  };
}

/** Plans each published slice once: as long as nothing it depends on changes, the very same object comes back. */
export function createImportedSlicePlanner(): (request: ImportedSliceRequest) => EndpointSlice {
  const plans = new WeakMap<
    EndpointSlice,
    { signature: string; request: ImportedSliceRequest; planned: EndpointSlice }
  >();
  return (request) => {
    const {
      published,
      rules,
      translations,
      cluster,
      isTrusted,
      isDraining,
      isOtherNetwork,
      isAskedByName,
      virtual,
      owner,
      portNames,
      derivedService,
    } = request;
    const signature = JSON.stringify([
      cluster,
      isTrusted,
      isDraining,
      isOtherNetwork,
      isAskedByName,
      virtual && [...virtual],
      owner,
      derivedService,
      [...portNames],
    ]);
    const known = plans.get(published);
    const isSame = known?.signature === signature && known.request.rules === rules;
    if (isSame && known.request.translations === translations) return known.planned;
    const planned = planImportedSlice(request);
    plans.set(published, { signature, request, planned });
    return planned;
  };
}

/** Different for different (cluster, slice), whatever they are called. */
export function importedSliceName(service: ServiceKey, cluster: string, published: string): string {
  return `${service.name}-${digestOf(`${cluster}/${published}`)}`;
}

export function isOurSlice(slice: EndpointSlice): boolean {
  return slice.metadata.labels?.[sliceManagedByLabel] === sliceManager && sourceClusterLabel in slice.metadata.labels;
}

function planPorts(ports: readonly EndpointPort[], names: ReadonlyMap<string, string>): EndpointPort[] {
  return ports.flatMap((port) => {
    const name = names.get(port.name ?? '');
    return name === undefined ? [] : [{ ...port, name, protocol: port.protocol ?? 'TCP' }];
  });
}

/** Counted, with no address: whether its own ones overlap with those here does not matter. */
function planRemote(
  { addresses, conditions, zone }: Endpoint,
  { published, isTrusted, isDraining = false, isAskedByName }: ImportedSliceRequest,
): Endpoint | undefined {
  const { addressType } = published;
  if ((addresses ?? []).length === 0 || addressType === 'FQDN') return undefined;
  const isUsable = (conditions?.ready ?? true) && isTrusted && !isDraining;
  return remoteEndpoint(addressType, { zone, isUsable, isAskedByName });
}

/** Those that have an address here, each once: of several with one label a ready one counts. */
function planVirtual(
  endpoints: readonly Endpoint[],
  virtual: VirtualAddresses,
  request: ImportedSliceRequest,
): Endpoint[] {
  const { addressType } = request.published;
  const planned = new Map<string, Endpoint>();
  for (const endpoint of endpoints) {
    const label = endpointLabel(endpoint);
    const address = addressType === 'FQDN' || !label ? undefined : virtual.get(virtualKey(addressType, label));
    if (address === undefined || planned.get(label!)?.conditions?.ready) continue;
    const conditions = conditionsOf(endpoint, request);
    planned.set(label!, { addresses: [address], conditions, hostname: label, zone: endpoint.zone });
  }
  return [...planned.values()];
}

// A slice of another cluster is read field by field: no other field reaches this home.
function planEndpoint(endpoint: Endpoint, request: ImportedSliceRequest): Endpoint | undefined {
  const { rules, translations } = request;
  const addresses = (endpoint.addresses ?? [])
    .filter((address) => refusal(address, rules) === undefined)
    .map((address) => translate(address, translations) ?? address);
  if (addresses.length === 0) return undefined;
  return { addresses, conditions: conditionsOf(endpoint, request), hostname: endpoint.hostname, zone: endpoint.zone };
}

function conditionsOf(
  { conditions }: Endpoint,
  { isTrusted, isDraining = false }: ImportedSliceRequest,
): Endpoint['conditions'] {
  const { ready = true, serving = ready, terminating = false } = conditions ?? {};
  return {
    ready: ready && isTrusted && !isDraining,
    serving: serving && isTrusted,
    terminating: terminating || isDraining,
  };
}
