// Looks host names up as this machine is set up to: at its nameservers, then in its hosts file. IPv4 if there is any.

import { lookup, Resolver } from 'node:dns/promises';
import type { LookUp } from '../net/followed-names.ts';

interface Found {
  readonly address: string;
  readonly ttl: number;
}

const timing = { timeout: 2000, tries: 2 };
/** For the hosts file, and for a name without any address. */
const otherTtlSeconds = 30;
/** The nameserver answered that there is none. */
const noRecord: ReadonlySet<string | undefined> = new Set(['ENOTFOUND', 'ENODATA']);

/** `servers` stand in for the nameservers of the machine. */
export function createSystemLookUp(servers?: readonly string[]): LookUp {
  const makeResolver = () => {
    const made = new Resolver(timing);
    if (servers !== undefined) made.setServers(servers);
    return made;
  };
  let resolver = makeResolver();
  const recordsOf = async (found: Promise<Found[]>) => {
    try {
      return await found;
    } catch (error) {
      if (noRecord.has((error as NodeJS.ErrnoException).code)) return [];
      // The nameservers of this machine may have changed.
      resolver = makeResolver();
      throw error;
    }
  };
  return async (host) => {
    const older = recordsOf(resolver.resolve4(host, { ttl: true }));
    const newer = recordsOf(resolver.resolve6(host, { ttl: true }));
    newer.catch(() => {});
    let found = await older;
    if (found.length === 0) found = await newer;
    if (found.length === 0) return { addresses: await inHostsFile(host), ttlSeconds: otherTtlSeconds };
    return {
      addresses: found.map(({ address }) => address),
      ttlSeconds: Math.min(...found.map(({ ttl }) => ttl)),
    };
  };
}

async function inHostsFile(host: string): Promise<string[]> {
  try {
    const found = await lookup(host, { all: true, order: 'ipv4first' });
    const wanted = found[0]?.family;
    return found.filter(({ family }) => family === wanted).map(({ address }) => address);
  } catch (error) {
    if (noRecord.has((error as NodeJS.ErrnoException).code)) return [];
    throw error;
  }
}
