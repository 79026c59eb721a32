// The resolver of `portolan up`, with its admin endpoint. It takes port 53 of the machine, or any if that cannot be had.

import { errorText } from '../../base/log.ts';
import { formatHostPort } from '../../base/net/host-port.ts';
import { findNamesCopy, ownerOf } from '../../catalog/copy/copy-keeper.ts';
import { startDnsAdmin } from '../dns/admin.ts';
import { dnsCertificates } from '../dns/certificates.ts';
import { type Resolver, type ResolverOptions, startResolver } from '../dns/part.ts';
import { staleRemark } from '../dns/stale-zones.ts';
import { openStubAccess } from '../dns/stub-access.ts';
import type { MemberPartsOptions } from './options.ts';

export interface UpResolver {
  readonly port: number;
  stop(): Promise<void>;
}

export async function startUpResolver(options: MemberPartsOptions & { readonly id: string }): Promise<UpResolver> {
  const { world, log, home, dns, id, stub, say, directory } = options;
  const access = stub && (await openStubAccess({ world, log, home, hosts: [stub.advertise.host] }));
  const file = `${directory}/stub-zones.json`;
  const endpoint = stub && access ? { ...stub.listen, ...access, file } : undefined;
  const given =
    endpoint && stub
      ? { stubEndpoint: endpoint, stubAdvertise: { ...stub.advertise, caBundle: endpoint.caBundle } }
      : {};
  const resolver = await startOnSomePort(options, given).catch((error: unknown) => {
    access?.stop();
    throw error;
  });
  try {
    const admin = await startDnsAdmin({
      ...{ part: 'dns', world, listen: { host: '127.0.0.1', port: 0 } },
      ...{ server: resolver.server, catalog: resolver.catalog },
      zones: () => resolver.zones(),
      notReady: () => resolver.notReady(),
      remark: () => staleRemark(resolver.staleZones()),
      status: () => ({ cluster: id, ...resolver.staleZones() }),
      registrations: resolver.leases,
      certificates: dnsCertificates(given),
    });
    const addresses = [...dns.hosts.map((host) => ({ host, port: resolver.port })), ...dns.others];
    say('dns', `${addresses.map(({ host, port }) => formatHostPort(host, port)).join(' ')}, admin ${admin.url}`);
    const stop = async () => {
      await admin.close();
      await resolver.stop();
      access?.stop();
    };
    return { port: resolver.port, stop };
  } catch (error) {
    await resolver.stop();
    access?.stop();
    throw error;
  }
}

type Stub = Pick<ResolverOptions, 'stubEndpoint' | 'stubAdvertise'>;

async function startOnSomePort(options: MemberPartsOptions & { readonly id: string }, stub: Stub): Promise<Resolver> {
  const { dns, say } = options;
  try {
    return await startAt(options, dns.port, stub);
  } catch (error) {
    if (!dns.mayMove || !isPortTaken(error)) throw error;
    say('dns', `port ${dns.port} cannot be had (${errorText(error)}); taking a free one`);
    return startAt(options, 0, stub);
  }
}

function isPortTaken(error: unknown): boolean {
  for (let one = error; one instanceof Error; one = one.cause)
    if (['EADDRINUSE', 'EACCES'].includes((one as NodeJS.ErrnoException).code ?? '')) return true;
  return false;
}

async function startAt(
  options: MemberPartsOptions & { readonly id: string },
  port: number,
  stub: Stub,
): Promise<Resolver> {
  const { world, log, home, id, zone, region, dns, directory } = options;
  const namesCopy = await findNamesCopy({ world, log, directory, owner: ownerOf(id) });
  return startResolver({
    ...{ world, log, home, namesCopy, ...stub },
    cluster: { id, ...(zone === '' ? {} : { zone }), ...(region === '' ? {} : { region }) },
    listen: { hosts: dns.hosts, port, ...(dns.others.length > 0 ? { others: dns.others } : {}) },
    ...(dns.forward.length > 0 ? { forward: { nameservers: dns.forward } } : {}),
  });
}
