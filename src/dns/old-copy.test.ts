// Answers from the names that an earlier process left, until ours have been read.

import { describe, expect, test } from 'vitest';
import { collectGarbage } from '../base/real/collect-garbage.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { copyPieces, readCopy } from '../catalog/copy/name-copy.ts';
import { FederationTable } from '../catalog/federation/federation-table.ts';
import { NameTable } from '../catalog/names/name-table.ts';
import { explain } from './explain/explainer.ts';
import { formatExplanation } from './explain/explanation.ts';
import { defaultSourceOption } from './message/wire.ts';
import { encodeSource } from './source/source-option.ts';
import { Asker, addImport, addService, extendedErrorOf, makeCatalog, stillClock, syncAll } from './testing/ask.ts';
import { AuthorityAsker } from './testing/authority.ts';
import { makePeers, peerAsker, peerService } from './testing/peer-names.ts';

const place = { id: 'west', zone: 'b', region: 'eu' };

/** A process that read its home, and stopped. */
function earlier(): Catalog {
  const catalog = makeCatalog({ cluster: place });
  addImport(catalog, 'shop/first', { type: 'Headless', slices: [{ cluster: 'south', endpoints: ['10.9.0.1'] }] });
  addService(catalog, 'shop/web', { ips: ['10.96.0.7'], ports: ['http:80'] });
  addService(catalog, 'shop/gone', { ips: ['10.96.0.8'] });
  addService(catalog, 'shop/alias', { externalName: 'web.shop.svc.cluster.local' });
  addService(catalog, 'shop/dangling', { externalName: 'later.shop.svc.cluster.local' });
  addImport(catalog, 'shop/checkout', {
    ports: ['http:80'],
    slices: [
      { cluster: 'west', ports: ['http:80'], endpoints: ['10.2.0.7'] },
      { cluster: 'east', ports: ['http:80'], endpoints: ['10.3.0.4'] },
    ],
  });
  return catalog;
}

/** One that finds what that one left. */
function later(before: Catalog, zones = [0, 1]): Catalog {
  syncAll(before);
  const catalog = makeCatalog({ cluster: place });
  leave(before.table, catalog.table, zones);
  return catalog;
}

function leave(before: NameTable, after: NameTable, zones: number[]): void {
  const facts = { owner: 'cluster west', zones: [], asOfMs: 0 };
  const read = readCopy(Buffer.concat(Array.from(copyPieces(before.snapshot(), facts), (piece) => Buffer.from(piece))));
  if (read.kind === 'unusable') throw new Error(read.why);
  after.setOld(read.memoryFor(zones));
}

function weakMemoryOf({ table }: Catalog): WeakRef<SharedArrayBuffer>[] {
  const { names, places } = table.memory.old!;
  return [names.bytes, names.slots, places.index.bytes, places.index.slots].map((memory) => new WeakRef(memory));
}

async function told(asker: Asker, question: string): Promise<string> {
  const text = await asker.ask(question);
  const error = extendedErrorOf(await asker.askPacket(question, { edns: true }));
  return error === undefined ? text : `${text} (${error.split(' ')[0]})`;
}

describe('dns: names that an earlier process left', () => {
  test.each([
    ['web.shop.svc.cluster.local A', '10.96.0.7 (3)'],
    ['WEB.shop.svc.cluster.local A', '10.96.0.7 (3)'],
    ['web.shop.svc.cluster.local AAAA', 'NODATA (3)'],
    ['_http._tcp.web.shop.svc.cluster.local SRV', '80 web.shop.svc.cluster.local (3)'],
    ['alias.shop.svc.cluster.local A', 'web.shop.svc.cluster.local, 10.96.0.7 (3)'],
    ['shop.svc.cluster.local A', 'NODATA (3)'],
    ['cluster.local SOA', 'SOA cluster.local (3)'],
    ['7.0.96.10.in-addr.arpa PTR', 'web.shop.svc.cluster.local (3)'],
    ['checkout.shop.svc.clusterset.local A', '10.2.0.7 (3)'],
    // A name missing there may exist by now.
    ['new.shop.svc.cluster.local A', 'SERVFAIL (14)'],
    ['new.shop.svc.clusterset.local A', 'SERVFAIL (14)'],
    ['_https._tcp.web.shop.svc.cluster.local SRV', 'SERVFAIL (14)'],
    ['9.0.96.10.in-addr.arpa PTR', 'SERVFAIL (14)'],
    ['dangling.shop.svc.cluster.local A', 'SERVFAIL later.shop.svc.cluster.local (14)'],
  ])('not read yet: %s -> %s', async (question, expected) => {
    expect(await told(new Asker(later(earlier())), question)).toBe(expected);
  });

  test('authority is claimed for old answers as for new ones', async () => {
    const reply = await new Asker(later(earlier())).askPacket('web.shop.svc.cluster.local A', { edns: true });
    expect(reply.flag_aa).toBe(true);
  });

  test('one zone has been read, the other not -> the one as it is now, the other as it was', async () => {
    const catalog = later(earlier());
    const asker = new Asker(catalog);
    addService(catalog, 'shop/web', { ips: ['10.96.0.9'] });
    expect(await told(asker, 'web.shop.svc.cluster.local A')).toBe('10.96.0.7 (3)');
    catalog.setSynced('services');
    expect(await told(asker, 'web.shop.svc.cluster.local A')).toBe('10.96.0.9');
    expect(await told(asker, 'gone.shop.svc.cluster.local A')).toBe('NXDOMAIN');
    expect(await told(asker, '8.0.96.10.in-addr.arpa PTR')).toBe('REFUSED (18)');
    expect(await told(asker, 'checkout.shop.svc.clusterset.local A')).toBe('10.2.0.7 (3)');
  });

  test('everything has been read -> as after a start without a copy, and its memory is free', async () => {
    const catalog = later(earlier());
    const cold = makeCatalog({ cluster: place });
    const asker = new Asker(catalog);
    for (const each of [catalog, cold]) {
      addService(each, 'shop/web', { ips: ['10.96.0.9'] });
      addImport(each, 'shop/checkout', { ips: ['243.0.0.1'] });
      syncAll(each);
    }
    catalog.table.dropOld();
    const namesOf = (each: Catalog) => [...each.table.nameKeys()].map((key) => Buffer.from(key).toString('latin1'));
    expect(namesOf(catalog)).toEqual(namesOf(cold));
    const bytesOf = (each: Catalog) => Buffer.from(each.table.snapshot().names.bytes);
    expect(Buffer.compare(bytesOf(catalog), bytesOf(cold))).toBe(0);
    for (const question of ['gone.shop.svc.cluster.local A', 'first.shop.svc.clusterset.local A'])
      expect(await told(asker, question)).toBe('NXDOMAIN');
    expect(await told(asker, 'checkout.shop.svc.clusterset.local A')).toBe('243.0.0.1');
    expect(asker.service.reader.old).toBeUndefined();
    expect(catalog.table.memory.old).toBeUndefined();
  });

  test('everything has been read -> nobody holds the memory of the copy any more', async () => {
    const catalog = later(earlier());
    const asker = new Asker(catalog);
    await told(asker, 'web.shop.svc.cluster.local A');
    const memory = weakMemoryOf(catalog);
    syncAll(catalog);
    catalog.table.dropOld();
    // A reference that was looked at is held until this turn ends.
    await new Promise((resolve) => setTimeout(resolve));
    collectGarbage();
    expect(memory.map((held) => held.deref())).toEqual([undefined, undefined, undefined, undefined]);
    expect(await told(asker, 'web.shop.svc.cluster.local A')).toBe('NXDOMAIN');
  });

  test('the copy is dropped before a zone has been read -> SERVFAIL again, also from those who began with it', async () => {
    const catalog = later(earlier());
    const asker = new Asker(catalog);
    catalog.table.dropOld();
    expect(await told(asker, 'web.shop.svc.cluster.local A')).toBe('SERVFAIL (14)');
  });

  test('a zone that the copy does not speak for -> SERVFAIL', async () => {
    const asker = new Asker(later(earlier(), [0]));
    expect(await told(asker, 'web.shop.svc.cluster.local A')).toBe('10.96.0.7 (3)');
    expect(await told(asker, 'checkout.shop.svc.clusterset.local A')).toBe('SERVFAIL (14)');
  });

  test('explained -> a record comes from the copy, not from facts that have not been read', async () => {
    const catalog = later(earlier());
    const { service } = new Asker(catalog);
    const options = { service, clock: stillClock, catalog, sourceOption: defaultSourceOption };
    const text = async (name: string) => formatExplanation(await explain(options, { name }));
    expect(await text('alias.shop.svc.cluster.local')).toBe(`\
alias.shop.svc.cluster.local A from west: NOERROR by cluster
  extended error 3
  CNAME web.shop.svc.cluster.local  ttl 5
    copy of names on disk, left by an earlier process
  web.shop.svc.cluster.local A 10.96.0.7  ttl 5
    copy of names on disk, left by an earlier process
`);
    expect(await text('new.shop.svc.cluster.local')).toContain('SERVFAIL by cluster\n  extended error 14');
    syncAll(catalog);
    expect(await text('alias.shop.svc.cluster.local')).not.toContain('copy');
  });

  test('names of peers -> under peers.local and as single names elsewhere, as old; others are held back, then go upstream', async () => {
    const before = makeCatalog({ cluster: place });
    const shared = makePeers(before);
    shared.upsert(peerService({ ports: [8443], status: { ips: ['241.0.0.1'] } }));
    shared.setSynced();
    syncAll(before);
    const catalog = makeCatalog({ cluster: place });
    leave(before.table, catalog.table, [0, 1, shared.zone.id]);
    const peers = makePeers(catalog);
    const asker = peerAsker(catalog, peers);
    expect(await told(asker, 'db.east.example A')).toBe('241.0.0.1 (3)');
    expect(await told(asker, '_grpc._tcp.db.east.example SRV')).toBe('SERVFAIL (14)');
    expect(await told(asker, 'example.com A')).toBe('SERVFAIL (14)');
    expect(await told(asker, '1.0.0.241.in-addr.arpa PTR')).toBe('db.east.example (3)');
    peers.passOthers();
    expect(await told(asker, 'db.east.example A')).toBe('241.0.0.1 (3)');
    expect(await told(asker, 'example.com A')).toBe('REFUSED (18)');
    peers.setSynced();
    expect(await told(asker, 'db.east.example A')).toBe('REFUSED (18)');
  });

  test("names of a federation -> in the order of the one who asks, by the copy's own numbers of clusters", async () => {
    const [before, after] = [new NameTable({ serial: 1 }), new NameTable({ serial: 1 })];
    const earlier = new FederationTable({ table: before });
    for (const [i, cluster] of ['foo', 'bar', 'baz'].entries())
      earlier.putText(`/world/shop/web/${cluster}`, `{"externalIP": "192.0.2.${i}", "clusterIP": "10.0.0.${i}"}`);
    earlier.setSynced();
    after.places.place({ id: 'baz' });
    leave(before, after, [earlier.zone.id]);
    const asker = new AuthorityAsker(new FederationTable({ table: after }));
    const source = (cluster: string) => ({ source: encodeSource({ cluster, hops: 1 }) });
    expect(await asker.ask('web.shop.world.svc.federation A', source('foo'))).toMatch(/^10\.0\.0\.0, 192/);
    expect(await asker.ask('web.shop.world.svc.federation A', source('baz'))).toMatch(/^10\.0\.0\.2, 192/);
    expect(await asker.ask('new.shop.world.svc.federation A', source('baz'))).toBe('SERVFAIL');
  });
});
