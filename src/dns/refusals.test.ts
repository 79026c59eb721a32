// Bad input, one by one: each is refused with an extended error that is really in the answer (RFC 8914), and what was good
// before is served right after it.

import packet, { type DecodedPacket } from 'dns-packet';
import { describe, expect, test } from 'vitest';
import { signMessage, type TsigKey } from '../base/dns/tsig.ts';
import { FederationTable } from '../catalog/federation/federation-table.ts';
import { NameTable } from '../catalog/names/name-table.ts';
import { encodeSource } from './source/source-option.ts';
import {
  Asker,
  addImport,
  describeAnswer,
  encodeQuestion,
  extendedErrorOf,
  makeCatalog,
  stillClock,
  syncAll,
} from './testing/ask.ts';
import { AuthorityAsker } from './testing/authority.ts';
import type { Exchange } from './upstream/exchange.ts';

const good = 'checkout.shop.svc.clusterset.local A';
const federated = 'web.shop.fed.svc.federation A';
const key: TsigKey = { name: 'peer-key', algorithm: 'hmac-sha256', secret: Buffer.alloc(32, 1) };
const sourceOf = (hops: number) => ({
  edns: { options: [{ code: 65_001, data: Buffer.from(encodeSource({ cluster: 'east', hops })) }] },
});

/** A federation's server that answers with one address. */
const answering: Exchange = {
  ask: async ({ message }) => {
    const { id, questions } = packet.decode(message);
    const name = questions![0]!.name;
    return packet.encode({
      type: 'response',
      id,
      questions,
      answers: [{ type: 'A', name, ttl: 60, data: '104.0.0.1' }],
    });
  },
  close: () => {},
};
const silent: Exchange = { ask: () => Promise.reject(new Error('timed out')), close: () => {} };

function resolver(exchange: Exchange = answering) {
  const catalog = makeCatalog();
  addImport(catalog, 'shop/checkout', { ips: ['243.0.0.7'] });
  syncAll(catalog);
  const stubZones = [{ zone: 'fed.svc.federation', nameservers: ['192.0.2.1'], sendsSource: true }];
  return { catalog, asker: new Asker(catalog, { exchange, stubZones, config: { keys: [key] } }) };
}

const summary = (reply: DecodedPacket) => `${describeAnswer(reply)}; ${extendedErrorOf(reply)}`;

describe('dns refuses with an extended error, and serves the rest', () => {
  test('a client outside the ACL', async () => {
    const { asker } = resolver();
    const reply = await asker.askPacket(good, { address: '192.0.2.1', edns: true });
    expect(summary(reply)).toBe('REFUSED; 18 this address is not among the clients served here');
    expect(await asker.ask(good)).toBe('243.0.0.7');
  });

  test('a name too long', async () => {
    const { asker } = resolver();
    const question = encodeQuestion(good, { edns: true });
    const optAt = encodeQuestion(good).length;
    const label = Buffer.from(`\x3f${'a'.repeat(63)}`);
    const name = Buffer.concat([label, label, label, label, Buffer.alloc(1)]);
    const tooLong = (labels: Buffer) =>
      Buffer.concat([question.subarray(0, 12), labels, Buffer.from([0, 1, 0, 1]), question.subarray(optAt)]);
    const reply = packet.decode((await asker.send(tooLong(name)))!);
    expect(summary(reply)).toBe('FORMERR; 0 the name is longer than 255 bytes');
    expect(reply.questions).toEqual([]);
    expect(await asker.ask(good)).toBe('243.0.0.7');
    // The longest name there can be is no mistake.
    const longest = Buffer.concat([label, label, label, Buffer.from(`\x3d${'b'.repeat(61)}`), Buffer.alloc(1)]);
    expect(describeAnswer(packet.decode((await asker.send(tooLong(longest)))!))).toBe('REFUSED');
  });

  test('a loop', async () => {
    const { asker } = resolver();
    const reply = await asker.askPacket(federated, sourceOf(8));
    expect(summary(reply)).toBe('REFUSED; 0 loop: servers of fed.svc.federation pass this query round in a circle');
    expect(await asker.ask(federated)).toBe('104.0.0.1');
  });

  test('a dead nameserver', async () => {
    const { asker } = resolver(silent);
    const reply = await asker.askPacket(federated, { edns: true });
    expect(summary(reply)).toBe('SERVFAIL; 22 no answer from 192.0.2.1:53');
    expect(await asker.ask(good)).toBe('243.0.0.7');
  });

  test('a wrong TSIG', async () => {
    const { asker } = resolver();
    const timeSeconds = stillClock.wallMs() / 1000;
    const query = encodeQuestion(good, { edns: true });
    const wrong = signMessage(query, { ...key, secret: Buffer.alloc(32, 2) }, { timeSeconds }).message;
    const reply = packet.decode((await asker.send(wrong))!);
    expect(extendedErrorOf(reply)).toMatch(/^18 the signature does not fit/);
    expect(reply.answers).toEqual([]);
    const right = packet.decode((await asker.send(signMessage(query, key, { timeSeconds }).message))!);
    expect(describeAnswer(right)).toBe('243.0.0.7');
  });

  const authority = () => {
    const federation = new FederationTable({ table: new NameTable({ serial: 1 }) });
    federation.putText('/fed/shop/web/east', '{"externalIP": "104.0.0.1", "clusterIP": "10.0.0.1"}');
    federation.setSynced();
    return new AuthorityAsker(federation);
  };
  const dropped = '18 only trusted servers may name the cluster that asks; that option was dropped';
  const source = encodeSource({ cluster: 'east', hops: 1 });

  test('an unlisted client certificate: its word is not taken', async () => {
    const asker = authority();
    const over = { source, address: '127.0.0.2', transport: 'tls' as const };
    expect(summary(await asker.askPacket(federated, { ...over, identity: 'somebody' }))).toBe(`104.0.0.1; ${dropped}`);
    expect(summary(await asker.askPacket(federated, { ...over, identity: 'resolver-a2' }))).toBe('10.0.0.1; undefined');
  });

  test('a spoofed source-cluster option at the authority: no cluster IP for a liar', async () => {
    const asker = authority();
    expect(summary(await asker.askPacket(federated, { source, address: '127.0.0.2' }))).toBe(`104.0.0.1; ${dropped}`);
    expect(summary(await asker.askPacket(federated, { source }))).toBe('10.0.0.1; undefined');
    expect(summary(await asker.askPacket(federated, { address: '127.0.0.2' }))).toBe('104.0.0.1; undefined');
  });

  test('a spoofed source-cluster option at a resolver that is the authority too: it stands nowhere, not here', async () => {
    const catalog = makeCatalog({ cluster: { id: 'east' } });
    const table = new FederationTable({ table: catalog.table, federation: 'fed' });
    table.putText('/fed/shop/web/east', '{"externalIP": "104.0.0.1", "clusterIP": "10.0.0.1"}');
    table.setSynced();
    const trusted = { ranges: ['127.0.0.9/32'], identities: [] };
    const both = new Asker(catalog, { config: { federationZones: [table.zone], trusted } });
    const edns = (data: Uint8Array) => ({ edns: { options: [{ code: 65_001, data: Buffer.from(data) }] } });
    expect(summary(await both.askPacket(federated, edns(source)))).toBe(`104.0.0.1; ${dropped}`);
    expect(summary(await both.askPacket(federated, edns(encodeSource({ cluster: 'west', hops: 1 }))))).toBe(
      `104.0.0.1; ${dropped}`,
    );
    // A trusted server whose option cannot be read is still no pod of this cluster.
    const garbled = { ...edns(Uint8Array.of(1, 255, 255)), address: '127.0.0.9' };
    expect(summary(await both.askPacket(federated, garbled))).toBe('104.0.0.1; undefined');
    // Our own pods say nothing.
    expect(summary(await both.askPacket(federated, { edns: true }))).toBe('10.0.0.1; undefined');
  });

  test('a spoofed source-cluster option of a pod: dropped by its resolver, asked anew or from the cache', async () => {
    const { asker } = resolver();
    for (let i = 0; i < 2; i++)
      expect(summary(await asker.askPacket(federated, sourceOf(0)))).toBe(`104.0.0.1; ${dropped}`);
    expect(summary(await asker.askPacket(federated, { edns: true }))).toBe('104.0.0.1; undefined');
  });

  test('the reason of one refusal -> not in the next answer', async () => {
    const { asker, catalog } = resolver();
    await asker.askPacket(good, { address: '192.0.2.1', edns: true });
    catalog.setStale('imports', true);
    expect(summary(await asker.askPacket(good, { edns: true }))).toBe('243.0.0.7; 3');
  });
});
