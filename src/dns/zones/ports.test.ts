import { describe, expect, test } from 'vitest';
import { rcode } from '../../base/dns/codes.ts';
import { decodeName, encodeName } from '../../base/dns/name.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { portsType } from '../../catalog/names/answers.ts';
import { Asker, addImport, addService, encodeQuestion, makeCatalog, syncAll } from '../testing/ask.ts';

const zone = 'shop.svc.clusterset.local';
const web = `web.${zone}`;

function storedPorts(catalog: Catalog): string[] {
  return [...catalog.table.nameKeys()].map((key) => decodeName(key)).filter((name) => name.startsWith('_'));
}

function serving() {
  const catalog = makeCatalog();
  const ports = ['http:80', 'metrics:9090', 'dns:53', 'dns:53/UDP', ':7000'];
  addImport(catalog, 'shop/web', { ips: ['243.0.0.1'], ports, slices: [{ cluster: 'east', ports, endpoints: [] }] });
  addImport(catalog, 'shop/idle', { ports: ['http:80'] });
  const endpoints = ['10.1.0.1', '10.1.0.2'];
  addImport(catalog, 'shop/db', {
    type: 'Headless',
    slices: [
      { cluster: 'east', ports: ['sql:5432', 'admin:81'], endpoints },
      { cluster: 'south', ports: ['sql:5433'], endpoints: ['10.2.0.1'] },
    ],
  });
  addService(catalog, 'shop/alias', { externalName: `_metrics._tcp.${web}` });
  addService(catalog, 'shop/dead', { externalName: `_other._tcp.${web}` });
  syncAll(catalog);
  return { catalog, asker: new Asker(catalog) };
}

describe('dns: names of ports', () => {
  test.each([
    [`_http._tcp.${web} SRV`, `80 ${web}`],
    [`_METRICS._tcp.${web} SRV`, `9090 ${web}`],
    [`_dns._tcp.${web} SRV`, `53 ${web}`],
    [`_dns._udp.${web} SRV`, `53 ${web}`],
    [`${web} SRV`, `80 ${web}, 9090 ${web}, 53 ${web}`],
    [`_http._tcp.${web} A`, 'NODATA'],
    [`_http._tcp.${web} ANY`, 'HINFO RFC8482'],
    [`_udp.${web} SRV`, 'NODATA'],
    [`_tcp.${web} ANY`, 'HINFO RFC8482'],
    [`_http._udp.${web} SRV`, 'NXDOMAIN'],
    [`_sctp.${web} SRV`, 'NXDOMAIN'],
    [`_http.${web} SRV`, 'NXDOMAIN'],
    [`_a._http._tcp.${web} SRV`, 'NXDOMAIN'],
    [`x._http._tcp.${web} SRV`, 'NXDOMAIN'],
    [`_http._tcp.none.${zone} SRV`, 'NXDOMAIN'],
    [`_http._tcp.idle.${zone} SRV`, 'NODATA'],
    [`_tcp.idle.${zone} A`, 'NODATA'],
    [`_http._tcp.db.${zone} SRV`, 'NXDOMAIN'],
    [`_admin._tcp.db.${zone} SRV`, `81 10-1-0-1.east.db.${zone}, 81 10-1-0-2.east.db.${zone}`],
    ['alias.shop.svc.cluster.local SRV', `_metrics._tcp.${web}, 9090 ${web}`],
    ['alias.shop.svc.cluster.local A', `_metrics._tcp.${web}`],
    ['dead.shop.svc.cluster.local SRV', `NXDOMAIN _other._tcp.${web}`],
  ])('ask %s -> %s', async (question, expected) => {
    expect(await serving().asker.ask(question)).toBe(expected);
  });

  test('dns: none of them has an entry, except where SRV records of the service do not tell which are whose', () => {
    // The port sql of the headless service has two numbers.
    expect(storedPorts(serving().catalog).sort()).toEqual(
      [`_admin._tcp.db.${zone}`, `_sql._tcp.db.${zone}`, `_tcp.db.${zone}`].sort(),
    );
  });

  test('dns: the list of ports is no record that can be asked for', async () => {
    const { asker } = serving();
    const question = encodeQuestion(`${web} A`);
    question.writeUInt16BE(portsType, 12 + encodeName(web).length);
    const reply = (await asker.send(question))!;
    expect(reply[3]! & 15).toBe(rcode.FORMERR);
    expect(reply.readUInt16BE(6)).toBe(0);
  });

  test('dns: a port whose name is no label -> names of the others stay right', async () => {
    const { asker, catalog } = serving();
    const ask = (question: string) => asker.ask(question);
    addImport(catalog, 'shop/web', { ips: ['243.0.0.1'], ports: ['a.b:1', 'http:80/UDP', 'caf\u00e9:2/SCTP'] });
    catalog.flush();
    expect(await ask(`_http._udp.${web} SRV`)).toBe(`80 ${web}`);
    for (const name of ['_udp', '_tcp', 'b._tcp', '_sctp']) expect(await ask(`${name}.${web} A`), name).toBe('NODATA');
    addImport(catalog, 'shop/web', { ips: ['243.0.0.1'], ports: ['a.b:1', 'http:80/UDP'] });
    catalog.flush();
    for (const name of ['_udp', '_tcp', 'b._tcp']) expect(await ask(`${name}.${web} A`), name).toBe('NODATA');
    expect(await ask(`_sctp.${web} A`)).toBe('NXDOMAIN');
    expect(storedPorts(catalog)).not.toContain(`_udp.${web}`);
  });

  test('dns: a port comes, goes, or needs an entry -> its names follow', async () => {
    const { asker, catalog } = serving();
    const change = (ports: string[]) => {
      addImport(catalog, 'shop/web', { ips: ['243.0.0.1'], ports });
      catalog.flush();
    };
    change(['http:8080', 'grpc:81']);
    expect(await asker.ask(`_http._tcp.${web} SRV`)).toBe(`8080 ${web}`);
    expect(await asker.ask(`_grpc._tcp.${web} SRV`)).toBe(`81 ${web}`);
    expect(await asker.ask(`_dns._udp.${web} SRV`)).toBe('NXDOMAIN');
    change(['http:80', 'http:8080']);
    expect(storedPorts(catalog)).not.toContain(`_http._tcp.${web}`);
    expect(await asker.ask(`_http._tcp.${web} SRV`)).toBe(`80 ${web}, 8080 ${web}`);
    change(['http:80', 'http:8080', 'other:443']);
    expect(storedPorts(catalog)).toContain(`_http._tcp.${web}`);
    expect(await asker.ask(`_http._tcp.${web} SRV`)).toBe(`80 ${web}, 8080 ${web}`);
    change([]);
    expect(storedPorts(catalog).filter((name) => name.endsWith(web))).toEqual([]);
    expect(await asker.ask(`_tcp.${web} SRV`)).toBe('NXDOMAIN');
  });
});
