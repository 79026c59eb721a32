// The parts of a federation's authority: the table of its names, what feeds it, and a DNS
// server that answers for them.

import type { Log } from '../../base/log.ts';
import { parseHostPort } from '../../base/net/host-port.ts';
import { Parts } from '../../base/parts.ts';
import type { World } from '../../base/world.ts';
import { keepNamesCopy, type NamesCopy } from '../../catalog/copy/copy-keeper.ts';
import { FederationTable } from '../../catalog/federation/federation-table.ts';
import { NameTable } from '../../catalog/names/name-table.ts';
import { trustAnnotations } from '../../clusterset/rules/leases/trusted-authorities.ts';
import type { DnsConfig, TransferConfig } from '../../dns/config/config.ts';
import { type DnsServer, startDns } from '../../dns/server.ts';
import { createLookup } from '../../dns/upstream/lookup.ts';
import { type Notifier, runNotify, type SecondaryState } from '../../dns/upstream/notify.ts';
import { createTransport } from '../../dns/upstream/transport.ts';
import { tcpConnection } from '../../federation/public/rfc2136.ts';
import { keepPartLease, type PartLease } from '../../kube/controller/part-lease.ts';
import { type StaleZones, staleZones } from '../dns/stale-zones.ts';
import { type AuthorityRole, type AuthoritySetup, startAuthorityRole, zoneWish } from './role.ts';

export interface AuthorityOptions
  extends AuthoritySetup,
    Pick<DnsConfig, 'listen' | 'serverAddresses' | 'workers' | 'clients' | 'transfer'> {
  readonly world: World;
  readonly log: Log;
  /** Distinguishes it from other authorities in its Lease. */
  readonly partId?: string;
  /** Where it runs. */
  readonly node?: string;
  /** Names on disk, for the next start; none are kept without it. */
  readonly namesCopy?: NamesCopy | undefined;
  /** They find the addresses of load balancers that have only a name. */
  readonly nameservers?: readonly string[];
}

export interface Authority {
  readonly port: number;
  readonly server: DnsServer;
  readonly table: FederationTable;
  readonly role: AuthorityRole;
  /** None without a broker. */
  readonly leases: readonly PartLease[];
  secondaries(): SecondaryState[];
  /** The zones answered from data that may be old. */
  staleZones(): StaleZones;
  whenSynced(): Promise<void>;
  stop(): Promise<void>;
}

export async function startAuthority(options: AuthorityOptions): Promise<Authority> {
  const { world, log } = options;
  const parts = new Parts(log);
  const nowSeconds = () => Math.floor(world.clock.wallMs() / 1000);
  const names = new NameTable({ serial: nowSeconds(), nowSeconds });
  const table = federationTable(names, options, options.serverAddresses);
  const { sourceOption } = zoneWish(options, options.said);
  options.namesCopy?.loaded?.serve(names, [table.zone]);
  const server = await startDns({
    world,
    log,
    federations: [table],
    listen: options.listen,
    serverId: `authority of ${options.federation}`,
    ...options.trust,
    workers: options.workers,
    clients: options.clients,
    sourceOption,
    transfer: options.transfer,
  });
  parts.add('dns server', () => server.close());
  const role = addRole({ ...options, table, server }, parts);
  const leases = addLease(options, parts);
  const notifier = options.transfer && addNotifier({ ...options, transfer: options.transfer, table }, parts);
  const { namesCopy: copy } = options;
  const keeping = { world, log, table: names, zones: () => [table.zone], whenSynced: () => role.whenSynced() };
  const keeper = copy && keepNamesCopy({ ...keeping, copy, isWhole: () => names.isReady(table.zone.id) }, parts);
  return {
    port: server.udpPort,
    server,
    table,
    role,
    leases,
    secondaries: () => notifier?.states() ?? [],
    staleZones: () =>
      staleZones({
        ...{ table: names, zones: [table.zone] },
        ...{ leaseProblem: leases[0]?.problem() ?? '', copyProblem: keeper?.problem() ?? '' },
      }),
    whenSynced: () => role.whenSynced(),
    stop: () => parts.stop(),
  };
}

/** `ownAddresses` are named as the zone's servers while the Federation names none. */
function federationTable(
  table: NameTable,
  setup: Pick<AuthoritySetup, 'federation' | 'fixed' | 'said'>,
  ownAddresses: readonly string[] = [],
): FederationTable {
  const wish = zoneWish(setup, setup.said);
  const made = new FederationTable({ table, federation: setup.federation, ...wish, serverAddresses: ownAddresses });
  made.setZone(wish);
  return made;
}

type RoleOptions = AuthorityOptions & { readonly table: FederationTable; readonly server: DnsServer };

function addRole(options: RoleOptions, parts: Parts): AuthorityRole {
  const { world, server, nameservers = [] } = options;
  const exchange = createTransport(world);
  parts.add('lookups', () => exchange.close());
  const role = startAuthorityRole({
    ...options,
    setTrust: (trust) => server.setTrust(trust),
    onZone: (change) => server.changeZones(change),
    connect: (text) => tcpConnection(parseHostPort(text, 53) ?? { host: text, port: 53 }, world.timers),
    ...(nameservers.length > 0 ? { lookUp: createLookup({ world, exchange, nameservers }) } : {}),
  });
  parts.add('authority', () => role.stop());
  return role;
}

type NotifierOptions = AuthorityOptions & { readonly transfer: TransferConfig; readonly table: FederationTable };

function addNotifier({ world, log, transfer, table }: NotifierOptions, parts: Parts): Notifier {
  const exchange = createTransport(world);
  parts.add('notices to secondaries', () => exchange.close());
  const { table: names } = table;
  const current = () =>
    names.isReady(table.zone.id) ? { zone: table.zone.name, serial: names.serial >>> 0 } : undefined;
  const notifier = runNotify({ world, log, exchange, ...transfer, current });
  parts.add('notices', () => notifier.stop());
  return notifier;
}

/** It reports at the broker. */
function addLease({ world, log, broker, partId, federation, node }: AuthorityOptions, parts: Parts): PartLease[] {
  if (broker === undefined) return [];
  const extras = () => trustAnnotations(broker.trustedAuthorities?.());
  const id = partId ?? federation;
  const lease = keepPartLease({ client: broker.client, world, log, part: 'authority', id, node, extras });
  parts.add('lease of the authority', () => lease.stop());
  return [lease];
}
