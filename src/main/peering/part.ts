// The parts of `portolan peering`: this mesh's certificate, its card for others, and the two sides of sharing.

import { hostname } from 'node:os';
import { dial } from '../../base/grpc/transport-client.ts';
import { serveGrpc } from '../../base/grpc/transport-server.ts';
import { errorText, type Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import { Parts } from '../../base/parts.ts';
import { probeTls } from '../../base/real/prober-tls.ts';
import type { World } from '../../base/world.ts';
import { certificateFacts } from '../../base/x509/certificates.ts';
import { clusterSetDefaults } from '../../clusterset/kinds/cluster-set.ts';
import { apply, createIfAbsent } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { keepPartLease, type PartLease } from '../../kube/controller/part-lease.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import { startPeerAddresses } from '../../peering/consumer/addresses.ts';
import type { PeerVersion } from '../../peering/kinds/peer.ts';
import type { MeshDefaults } from '../../peering/kinds/peer-export.ts';
import { type Peering, startPeering } from '../../peering/peering.ts';
import type { Reserved } from '../../peering/rules/link-config.ts';
import { cardSecretsKey, meshCardData, meshCardName } from '../../peering/rules/peer-introduction.ts';
import { openIdentity } from '../../peering/trust/identity.ts';
import { followReserved } from '../identity/reserved.ts';
import { nodeName } from '../process.ts';

export interface PeeringRoleOptions {
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly home: Client;
  readonly namespace: string;
  /** Where its Secrets and those that Peers name lie; beside the Peers if left out. */
  readonly secretsNamespace?: string;
  readonly listen: { readonly host: string; readonly port: number };
  /** `host:port` under which peers reach us; empty if they cannot. A port of 0 becomes the one that is listened on. */
  readonly advertise: string;
  readonly mesh: MeshDefaults;
  /** Zones, ranges and hosts that no peer may claim, beside those of the clusterset. */
  readonly own: Reserved;
  readonly versions: readonly PeerVersion[];
  readonly isReplicated: boolean;
  /** Ranges from which services of peers get an address of their own; none if empty, the clusterset's if left out. */
  readonly addressRanges?: readonly string[];
  /** How often the ingresses of peers and our own are tried; never if left out. */
  readonly ingressProbeMs?: number;
  readonly files?: { readonly certificate: string; readonly key: string; readonly bundle: string };
}

export interface PeeringRole {
  readonly peering: Peering;
  readonly lease: PartLease;
  /** Empty while it serves and its home answers. */
  notReady(): string;
  readonly advertised: string;
  stop(): Promise<void>;
}

export async function startPeeringRole(options: PeeringRoleOptions): Promise<PeeringRole> {
  const { world, log, metrics, home: client, namespace, secretsNamespace = namespace, mesh } = options;
  const parts = new Parts(log);
  try {
    const own = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } };
    await createIfAbsent(client, namespaceType, own);
    const { files } = options;
    const { trustDomain } = mesh;
    const hosts = [hostOf(options.advertise)].filter((host) => host !== '');
    const kept = { namespace: secretsNamespace, formerNamespace: namespace };
    const identity = await openIdentity({ world, log, client, ...kept, trustDomain, hosts, ...(files && { files }) });
    parts.add('identity', () => identity.stop());
    metrics.certificateEnd('peering', () => {
      const own = identity.current();
      return own && certificateFacts(own.certificate).notAfterMs;
    });
    let started: Peering | undefined;
    const onChanged = () => started?.ownChanged();
    const reserved = followReserved({ world, log, home: client, ...options.own, onChanged });
    parts.add('reserved names', () => reserved.stop());
    await reserved.whenRead();
    const peering = await startPeering({
      ...{ world, log, metrics, client, namespace, secretsNamespace, mesh },
      listen: options.listen,
      own: () => reserved.current(),
      credentials: identity,
      versions: options.versions,
      isReplicated: options.isReplicated,
      serve: serveGrpc,
      dial,
      ...(options.ingressProbeMs && { ingressProbe: { probe: probeTls, everyMs: options.ingressProbeMs } }),
    });
    started = peering;
    parts.add('peering', () => peering.stop());
    const ranges = options.addressRanges ?? reserved.set()?.ranges.peers ?? clusterSetDefaults.addressRanges.peers;
    if (ranges.length > 0) {
      const addresses = await startPeerAddresses({ world, log, home: client, namespace, ranges });
      parts.add('addresses', () => addresses.stop());
    }
    const advertised = options.advertise.replace(/:0$/, `:${peering.port}`);
    const publish = () =>
      publishCard(client, namespace, {
        ...meshCardData({ address: advertised, domain: trustDomain, bundle: identity.bundle() }, mesh),
        [cardSecretsKey]: secretsNamespace,
      });
    await publish();
    const off = identity.onChanged(() => {
      publish().catch((error) => log.warn('our card for peers was not written', { error: errorText(error) }));
    });
    parts.add('card', () => off());
    const id = hostname();
    const lease = keepPartLease({ client, world, log, part: 'peering', id, node: nodeName(), namespace });
    parts.add('lease', () => lease.stop());
    return { peering, advertised, lease, notReady: () => lease.problem(), stop: () => parts.stop() };
  } catch (error) {
    await parts.stop();
    throw error;
  }
}

/** Host of `host:port`; empty if there is none. */
function hostOf(address: string): string {
  const parts = /^(?:https:\/\/)?(?:\[([^\]]+)\]|([^:]+)):\d+$/.exec(address);
  return parts?.[1] ?? parts?.[2] ?? '';
}

async function publishCard(client: Client, namespace: string, data: Record<string, string>): Promise<void> {
  const card: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: meshCardName, namespace }, data };
  // Somebody may keep other keys in it.
  const change = (there: ConfigMap | undefined) => (there ? { ...there, data: { ...there.data, ...data } } : card);
  await apply<ConfigMap>({ client, type: configMapType, present: undefined, change, onConflict: 'retry' });
}
