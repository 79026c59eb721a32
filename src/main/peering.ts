// The parts of `portolan peering`: this mesh's certificate, its card for others, and the two sides of sharing.

import { errorText, type Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { World } from '../base/world.ts';
import { isAlreadyExists, isNotFound } from '../client/api-error.ts';
import type { Client } from '../client/client.ts';
import { type ConfigMap, configMapType } from '../model/config-map.ts';
import { namespaceType } from '../model/namespace.ts';
import type { PeerVersion } from '../model/peer.ts';
import type { MeshDefaults } from '../model/peer-export.ts';
import { meshCardData, meshCardName } from '../model/peer-introduction.ts';
import { type Peering, startPeering } from '../peering/peering.ts';
import { dial } from '../peering/transport-client.ts';
import { servePeering } from '../peering/transport-server.ts';
import { Parts } from './parts.ts';
import { startPeerAddresses } from './peer-addresses.ts';
import { openIdentity } from './peering-identity.ts';

export interface PeeringRoleOptions {
  readonly world: World;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly home: Client;
  readonly namespace: string;
  readonly listen: { readonly host: string; readonly port: number };
  /** `host:port` under which peers reach us; empty if they cannot. A port of 0 becomes the one that is listened on. */
  readonly advertise: string;
  readonly mesh: MeshDefaults;
  readonly ownZones: readonly string[];
  readonly versions: readonly PeerVersion[];
  readonly isReplicated: boolean;
  /** Ranges from which services of peers get an address of their own; none if empty. */
  readonly addressRanges: readonly string[];
  readonly files?: { readonly certificate: string; readonly key: string; readonly bundle: string };
}

export interface PeeringRole {
  readonly peering: Peering;
  readonly advertised: string;
  stop(): Promise<void>;
}

export async function startPeeringRole(options: PeeringRoleOptions): Promise<PeeringRole> {
  const { world, log, metrics, home: client, namespace, mesh } = options;
  const parts = new Parts(log);
  try {
    await ensureNamespace(client, namespace);
    const { files } = options;
    const { trustDomain } = mesh;
    const identity = await openIdentity({ world, log, client, namespace, trustDomain, ...(files && { files }) });
    parts.add('identity', () => identity.stop());
    const peering = await startPeering({
      ...{ world, log, metrics, client, namespace, mesh },
      listen: options.listen,
      ownZones: options.ownZones,
      credentials: identity,
      versions: options.versions,
      isReplicated: options.isReplicated,
      serve: servePeering,
      dial,
    });
    parts.add('peering', () => peering.stop());
    if (options.addressRanges.length > 0) {
      const ranges = options.addressRanges;
      const addresses = await startPeerAddresses({ world, log, home: client, namespace, ranges });
      parts.add('addresses', () => addresses.stop());
    }
    const advertised = options.advertise.replace(/:0$/, `:${peering.port}`);
    const publish = () =>
      publishCard(
        client,
        namespace,
        meshCardData({ address: advertised, domain: trustDomain, bundle: identity.bundle() }, mesh),
      );
    await publish();
    const off = identity.onChanged(() => {
      publish().catch((error) => log.warn('our card for peers was not written', { error: errorText(error) }));
    });
    parts.add('card', () => off());
    return { peering, advertised, stop: () => parts.stop() };
  } catch (error) {
    await parts.stop();
    throw error;
  }
}

async function ensureNamespace(client: Client, name: string): Promise<void> {
  try {
    await client.get(namespaceType, { name });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
    await client.create(namespaceType, object).catch((failure) => {
      if (!isAlreadyExists(failure)) throw failure;
    });
  }
}

async function publishCard(client: Client, namespace: string, data: Record<string, string>): Promise<void> {
  const metadata = { name: meshCardName, namespace };
  const card: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
  try {
    await client.create(configMapType, card);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    await client.patch(configMapType, metadata, { kind: 'merge', body: { data } });
  }
}
