import { describe, expect, test } from 'vitest';
import { decodeName } from '../../base/dns/name.ts';
import { Asker, addImport, addService, makeCatalog, type SliceSpec, syncAll } from '../testing/ask.ts';

const name = 'db.shop.svc.clusterset.local';

function serving(slices: readonly SliceSpec[]) {
  const catalog = makeCatalog();
  addImport(catalog, 'shop/db', { type: 'Headless', slices: [...slices] });
  addService(catalog, 'shop/first', { externalName: `10-1-0-1.east.${name}` });
  addService(catalog, 'shop/none', { externalName: `10-9-9-9.east.${name}` });
  syncAll(catalog);
  const stored = () => [...catalog.table.nameKeys()].map((key) => decodeName(key)).filter((key) => key.endsWith(name));
  return { catalog, asker: new Asker(catalog), stored };
}

const ports = ['sql:5432'];
const east = { cluster: 'east', ports, endpoints: ['10.1.0.1', '10.1.0.2'] };
const east6 = { name: 'db-east6', cluster: 'east', ports, endpoints: ['fd00:240::1:13', 'fd00::'] };
const west = { cluster: 'eu.West', ports, endpoints: ['10.1.0.1'] };

describe('dns: names of endpoints without hostnames', () => {
  test('dns: none of them is stored, whatever their number', () => {
    const { stored } = serving([east, east6, west]);
    expect(stored()).toEqual([name]);
  });

  test.each([
    [`10-1-0-1.east.${name} A`, '10.1.0.1'],
    [`10-1-0-1.eu.west.${name} A`, '10.1.0.1'],
    [`10-1-0-2.EAST.${name} A`, '10.1.0.2'],
    [`10-1-0-2.east.${name} AAAA`, 'NODATA'],
    [`10-1-0-2.east.${name} ANY`, 'HINFO RFC8482'],
    [`fd00-240--1-13.east.${name} AAAA`, 'fd00:240::1:13'],
    [`fd00-240-0-0-0-0-1-13.east.${name} AAAA`, 'fd00:240::1:13'],
    [`fd00--0.east.${name} AAAA`, 'fd00::'],
    [`fd00--00.east.${name} AAAA`, 'NXDOMAIN'],
    [`010-1-0-2.east.${name} A`, 'NXDOMAIN'],
    [`10-1-0-2.eu.west.${name} A`, 'NXDOMAIN'],
    [`10-1-0-2.${name} A`, 'NXDOMAIN'],
    [`x.10-1-0-2.east.${name} A`, 'NXDOMAIN'],
    [`east.${name} A`, 'NODATA'],
    [`eu.west.${name} A`, 'NODATA'],
    [`south.${name} A`, 'NXDOMAIN'],
    ['first.shop.svc.cluster.local A', `10-1-0-1.east.${name}, 10.1.0.1`],
    ['first.shop.svc.cluster.local AAAA', `10-1-0-1.east.${name}`],
    ['none.shop.svc.cluster.local A', `NXDOMAIN 10-9-9-9.east.${name}`],
  ])('ask %s -> %s', async (question, expected) => {
    // The same address in two clusters is once in the service's own answer; it has a name in each.
    expect(await serving([east, east6, west]).asker.ask(question)).toBe(expected);
  });

  test('dns: SRV -> the names of the endpoints, with an address beside each', async () => {
    const { asker } = serving([east, east6, west]);
    const reply = await asker.askPacket(`_sql._tcp.${name} SRV`);
    const targets = reply.answers!.map((record) => (record as { data: { target: string } }).data.target);
    expect(targets.sort()).toEqual(
      [...['10-1-0-1', '10-1-0-2', 'fd00--0', 'fd00-240--1-13'].map((label) => `${label}.east`), '10-1-0-1.eu.west']
        .map((host) => `${host}.${name}`)
        .sort(),
    );
    expect(new Set(reply.additionals!.filter(({ type }) => type !== 'OPT').map((record) => record.name))).toEqual(
      new Set(targets),
    );
  });

  test('dns: an endpoint of the service has a hostname -> all have entries, and those that look alike share one', async () => {
    const endpoints = ['10.1.0.1', { ip: '10.1.0.2', hostname: '10-1-0-1' }];
    const { asker, catalog, stored } = serving([{ cluster: 'east', ports, endpoints }]);
    expect((await asker.ask(`10-1-0-1.east.${name} A`)).split(', ').sort()).toEqual(['10.1.0.1', '10.1.0.2']);
    addImport(catalog, 'shop/db', { type: 'Headless', slices: [{ cluster: 'east', ports, endpoints: ['10.1.0.1'] }] });
    catalog.flush();
    expect(await asker.ask(`10-1-0-1.east.${name} A`)).toBe('10.1.0.1');
    expect(stored()).not.toContain(`10-1-0-1.east.${name}`);
  });

  test('dns: more endpoints than are compared with each other -> each has its name', async () => {
    const endpoints = Array.from({ length: 600 }, (_, i) => `10.2.${i >> 8}.${i & 255}`);
    const { asker, stored } = serving([{ cluster: 'east', ports, endpoints }]);
    for (const ip of endpoints) expect(await asker.ask(`${ip.replaceAll('.', '-')}.east.${name} A`)).toBe(ip);
    expect(stored()).toHaveLength(1);
  });
});
