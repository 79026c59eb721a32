import { describe, expect, test } from 'vitest';
import { recordType } from '../../base/dns/codes.ts';
import { formatAddress } from '../../base/net/ip.ts';
import { addImport, makeCatalog, syncAll } from '../../dns/testing/ask.ts';
import { keyOfPeerService, makePeers, peerService } from '../../dns/testing/peer-names.ts';
import type { PeerTable } from './peer-table.ts';

const addressOf = ({ table }: PeerTable, name: string) =>
  table
    .get(name)
    ?.sets.filter(({ type }) => type === recordType.A)
    .flatMap(({ records }) => records.map(({ rdata }) => formatAddress(rdata)))
    .join();

describe('names of peers', () => {
  const name = 'db.shared.example';
  const older = peerService({ peer: 'east', fqdn: name, firstSeenMs: 1, status: { ips: ['241.0.0.1'] } });
  const newer = peerService({ peer: 'north', fqdn: name, firstSeenMs: 2, status: { ips: ['241.0.0.2'] } });

  test.each([
    ['the older comes first', [older, newer]],
    ['the newer comes first', [newer, older]],
  ])('two claim one name, %s -> the older has it, each has its alias', (_, services) => {
    const peers = makePeers(makeCatalog());
    for (const service of services) peers.upsert(service);
    expect(addressOf(peers, name)).toBe('241.0.0.1');
    expect(addressOf(peers, 'db.east.svc.peers.local')).toBe('241.0.0.1');
    expect(addressOf(peers, 'db.north.svc.peers.local')).toBe('241.0.0.2');
    peers.remove(keyOfPeerService(older));
    expect(addressOf(peers, name)).toBe('241.0.0.2');
    expect(addressOf(peers, 'db.east.svc.peers.local')).toBeUndefined();
    peers.remove(keyOfPeerService(newer));
    expect(addressOf(peers, name)).toBeUndefined();
    expect([...peers.keys()]).toEqual([]);
  });

  test('the status says who has a name -> it has it, whoever is older', () => {
    const peers = makePeers(makeCatalog());
    peers.upsert(older);
    peers.upsert(
      peerService({
        ...{ peer: 'north', fqdn: name, firstSeenMs: 2 },
        status: { ips: ['241.0.0.2'], hostnames: [name] },
      }),
    );
    expect(addressOf(peers, name)).toBe('241.0.0.2');
    const lost = { ips: ['241.0.0.1'], hostnames: ['db.east.svc.peers.local'] };
    peers.upsert(peerService({ peer: 'east', fqdn: name, status: lost }));
    expect(peers.report(name)).toMatchObject({ holder: { facts: { peer: 'north' } }, others: [] });
  });

  test.each([
    ['a name of the clusterset', 'db.shop.svc.clusterset.local'],
    ['a reverse name', '7.0.2.10.in-addr.arpa'],
    ['a name of the zone itself', 'ns.dns.peers.local'],
    ['the zone', 'peers.local'],
    ['a port', '_http._tcp.db.example'],
  ])('%s is given to a service -> it is left as it was', (_, taken) => {
    const catalog = makeCatalog();
    addImport(catalog, 'shop/db', { ips: ['243.0.0.7'] });
    syncAll(catalog);
    const peers = makePeers(catalog);
    const before = catalog.table.get(taken);
    const service = peerService({ status: { hostnames: [taken, 'db.east.svc.peers.local'] } });
    peers.upsert(service);
    expect(catalog.table.get(taken)).toEqual(before);
    expect(addressOf(peers, 'db.east.svc.peers.local')).toBe('241.0.0.1');
    peers.remove(keyOfPeerService(service));
    expect(catalog.table.get(taken)).toEqual(before);
  });

  test('names above one another -> each exists for as long as it or something below it does', () => {
    const peers = makePeers(makeCatalog());
    const upper = peerService({ fqdn: 'a.example', status: { hostnames: ['x.peers.local'] } });
    const lower = peerService({ fqdn: 'b.example', status: { hostnames: ['y.x.peers.local'], ips: ['241.0.0.2'] } });
    const at = () => peers.table.get('x.peers.local')?.sets.length;
    peers.upsert(lower);
    expect(at()).toBe(0);
    peers.upsert(upper);
    expect(addressOf(peers, 'x.peers.local')).toBe('241.0.0.1');
    peers.remove(keyOfPeerService(upper));
    expect(at()).toBe(0);
    peers.upsert(upper);
    peers.remove(keyOfPeerService(lower));
    expect(addressOf(peers, 'x.peers.local')).toBe('241.0.0.1');
    peers.remove(keyOfPeerService(upper));
    expect(at()).toBeUndefined();
  });

  test('a change that changes no name -> nothing is written', () => {
    const catalog = makeCatalog();
    const peers = makePeers(catalog);
    const service = peerService();
    peers.upsert(service);
    const serial = () => new Int32Array(catalog.table.memory.state)[2];
    const before = serial();
    peers.upsert({ ...service, metadata: { ...service.metadata, resourceVersion: '8' } });
    peers.upsert({ ...service, spec: { ...service.spec, description: 'another one' } });
    expect(serial()).toBe(before);
    peers.upsert(peerService({ status: { ips: ['241.0.0.9'] } }));
    expect(serial()).toBe(before! + 1);
  });
});
