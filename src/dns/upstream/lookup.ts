// Looks a host name up at other servers, for this process's own use: both kinds of addresses, and how long they hold.

import { classIn, rcode, recordType } from '../../base/dns/codes.ts';
import { decodeMessage, encodeMessage, type Message } from '../../base/dns/message.ts';
import { formatAddress } from '../../base/net/ip.ts';
import type { World } from '../../base/world.ts';
import { parseServerAddress } from '../config/config.ts';
import type { Exchange } from './exchange.ts';
import { ServerSet } from './servers.ts';

export interface LookupOptions {
  readonly world: Pick<World, 'clock'>;
  readonly exchange: Exchange;
  readonly nameservers: readonly string[];
}

export interface LookedUp {
  readonly addresses: readonly string[];
  readonly ttlSeconds: number;
}

const timeoutMs = 2000;
/** For a name without any address. */
const emptyTtlSeconds = 30;

export function createLookup(options: LookupOptions): (host: string) => Promise<LookedUp> {
  const addresses = options.nameservers.map((text) => parseServerAddress(text));
  const servers = new ServerSet(addresses, { takesTurns: true });

  async function ask(name: string, type: number): Promise<Message> {
    const { world, exchange } = options;
    const questions = [{ name, type, class: classIn }];
    const message = encodeMessage({ id: 0, flags: 0x0100, questions, answers: [], authorities: [], additionals: [] });
    for (const server of servers.inOrder()) {
      const askedMs = world.clock.monotonicMs();
      try {
        let reply = decodeMessage(await exchange.ask({ server, message, timeoutMs, isTcp: false }));
        if ((reply.flags & 0x0200) !== 0)
          reply = decodeMessage(await exchange.ask({ server, message, timeoutMs, isTcp: true }));
        servers.answered(server, world.clock.monotonicMs());
        const code = reply.flags & 15;
        if (code === rcode.NOERROR || code === rcode.NXDOMAIN) return reply;
      } catch {
        servers.didNotAnswer(server, askedMs);
      }
    }
    throw new Error(`look up ${name}: no answer from ${options.nameservers.join(', ')}`);
  }

  return async (host) => {
    const name = host.replace(/\.$/, '');
    const replies = await Promise.all([ask(name, recordType.A), ask(name, recordType.AAAA)]);
    const records = replies.flatMap(({ answers }) => answers);
    const found = records.filter(({ type }) => type === recordType.A || type === recordType.AAAA);
    return {
      addresses: found.map(({ rdata }) => formatAddress(rdata)),
      ttlSeconds: found.length === 0 ? emptyTtlSeconds : Math.min(...records.map(({ ttl }) => ttl)),
    };
  };
}
