// For tests: an authority of one federation, asked by peers at 127.0.0.1 and by others.

import packet, { type DecodedPacket } from 'dns-packet';
import { silentLog } from '../../base/log.ts';
import type { FederationTable } from '../../catalog/federation/federation-table.ts';
import { DnsService } from '../chain/service.ts';
import { Answer } from '../message/answer.ts';
import { defaultSourceOption, type Transport } from '../message/wire.ts';
import { createCounters } from '../metrics/observe.ts';
import { describeAnswer, encodeQuestion, stillClock } from './ask.ts';

export interface AuthorityAskOptions {
  readonly source?: Uint8Array;
  readonly address?: string;
  readonly transport?: Transport;
  readonly identity?: string;
}

export class AuthorityAsker {
  readonly service: DnsService;
  readonly #answer = new Answer();

  constructor(federation: FederationTable) {
    const { table } = federation;
    this.service = new DnsService({
      world: {
        clock: stillClock,
        timers: { after: () => ({ cancel: () => {} }) },
        random: { float: () => 0, bytes: (count) => new Uint8Array(count), uuid: () => '' },
      },
      log: silentLog,
      counters: createCounters(),
      writeLine: () => {},
      memory: table.memory,
      stubZones: [],
      exchange: { ask: () => Promise.reject(new Error('no network')), close: () => {} },
      config: {
        serverId: 'authority',
        clients: ['127.0.0.0/8'],
        cluster: { id: '' },
        localCluster: 0,
        federationZones: [federation.zone],
        sourceOption: defaultSourceOption,
        trusted: { ranges: ['127.0.0.1/32'], identities: ['resolver-a2'] },
      },
    });
    table.onNews((news) => this.service.take(news));
  }

  async askPacket(question: string, options: AuthorityAskOptions = {}): Promise<DecodedPacket> {
    const { source, address = '127.0.0.1', transport = 'udp', identity = '' } = options;
    const edns = source ? { options: [{ code: defaultSourceOption, data: Buffer.from(source) }] } : true;
    const query = encodeQuestion(question, { edns });
    const length = this.service.responder.respond(query, transport, address, 5353, identity, this.#answer, 0);
    if (typeof length !== 'number') throw new Error('an authority never asks anybody else');
    return packet.decode(Buffer.from(this.#answer.bytes.subarray(0, length)));
  }

  async ask(question: string, options: AuthorityAskOptions = {}): Promise<string> {
    return describeAnswer(await this.askPacket(question, options));
  }
}
