// Names under a stub zone go to that zone's servers, with word of which cluster asks. A value that a pod put into
// that option is dropped; a query that was passed on too often is in a loop and is refused.

import { rcode } from '../../base/dns/codes.ts';
import type { Answer } from '../message/answer.ts';
import type { Handler, Later, Step } from '../message/handler.ts';
import { extendedError, type Query } from '../message/wire.ts';
import { type SourceTagger, sayDropped } from '../source/trusted-servers.ts';
import type { StubEntry, StubZones } from '../stub-zones/stub-zones.ts';
import { overTls } from '../upstream/exchange.ts';
import { Forwarder, type ForwarderOptions } from '../upstream/forwarder.ts';

export interface StubHandlerOptions {
  readonly zones: StubZones;
  readonly tagger: SourceTagger;
  /** This server's own, for knowing again what comes back to it. */
  readonly mark?: string;
  readonly forwarding: Omit<ForwarderOptions, 'servers'>;
  /** Names that this server answers itself: what others say of them is left out. */
  readonly isOurs?: (name: Uint8Array) => boolean;
}

export function stubHandler(options: StubHandlerOptions): Handler {
  const forwarders = new WeakMap<StubEntry, Forwarder>();

  function forwarderOf(entry: StubEntry): Forwarder {
    let forwarder = forwarders.get(entry);
    if (!forwarder) {
      // With word of who asks goes the way it has come; without, circles are found by asking.
      const loop =
        options.mark !== undefined && !entry.sendsSource ? { mark: options.mark, zone: entry.zone } : undefined;
      const { forwarding } = options;
      const exchange = entry.tls ? overTls(forwarding.exchange, entry.tls) : forwarding.exchange;
      const isOfOthers = (name: Uint8Array) => {
        const other = options.zones.find(name, name.length);
        return other === undefined ? (options.isOurs?.(name) ?? false) : other !== entry;
      };
      const { servers, key } = entry;
      forwarder = new Forwarder({
        ...forwarding,
        exchange,
        servers,
        key,
        loop,
        isOfOthers,
        ...(entry.tls ? { isOverTls: true } : {}),
      });
      forwarders.set(entry, forwarder);
    }
    return forwarder;
  }

  function handle(query: Query, answer: Answer): Step | Later {
    const entry = options.zones.find(query.name, query.nameLength);
    if (!entry) return 'next';
    answer.handler = 'stub';
    if (!entry.sendsSource) return forwarderOf(entry).handle(query, answer);
    const tag = options.tagger.tagFor(query);
    if (tag === 'loop') {
      answer.fail(
        rcode.REFUSED,
        extendedError.other,
        `loop: servers of ${entry.zone} pass this query round in a circle`,
      );
      return 'done';
    }
    if (options.tagger.isDropping(query)) sayDropped(answer);
    return forwarderOf(entry).handle(query, answer, tag);
  }

  return { name: 'stub', handle };
}
