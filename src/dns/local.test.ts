// Names that the operator gives: static records, hosts, rewrites and templates, and where they stand beside all others.

import { describe, expect, test } from 'vitest';
import { inOneGo } from '../base/turns.ts';
import { mergeRecords, readHosts, readRecords } from './local/records.ts';
import { parseRules } from './local/rules.ts';
import { LocalTable } from './local/table.ts';
import { addImport, addService, describeAnswer, extendedErrorOf } from './testing/ask.ts';
import { answering, setUpForwarding } from './testing/edge/test-net.ts';

const hosts = `
# a comment
10.1.0.7  db.corp.example db   # the first name is its own
10.1.0.8  DB.corp.example.
fd00::7   db.corp.example
10.96.0.7 wrong.example
127.0.0.1 web.shop.svc.cluster.local
`;
const records = String.raw`
; a comment
mail.corp.example   MX 10 mx.corp.example
text.corp.example   TXT "a ; b" "say \"hi\""
_ldap._tcp.corp.example IN SRV 0 5 389 db.corp.example
alias.corp.example  CNAME db.corp.example
far.corp.example    CNAME www.example.com
into.corp.example   CNAME web.shop.svc.cluster.local
round.corp.example  CNAME round.shop.svc.cluster.local
raw.corp.example    TYPE65 \# 3 000100
`;
const rules = String.raw`
rewrites:
  - {exact: old.example, to: web.shop.svc.cluster.local}
  - {exact: away.example, to: www.example.com}
  - {suffix: stage.example, to: corp.example}
  - {suffix: deep.stage.example, to: example.com}
  - {regex: '^(\w+)\.set\.example$', to: '$1.shop.svc.clusterset.local'}
  - {regex: '^(\w+)\.grow\.example$', to: 'more.grow.example'}
  - {exact: text.corp.example, to: web.shop.svc.cluster.local}
templates:
  - {suffix: apps.example, A: [192.0.2.10, 192.0.2.11]}
  - {suffix: blocked.example, rcode: NXDOMAIN}
  - {exact: no.apps.example, rcode: REFUSED}
  - {regex: '^ip-(\d+)-(\d+)-(\d+)-(?P<last>\d+)\.example$', A: '$1.$2.$3.LAST', TXT: 'made of $0'}
`.replace('LAST', '$'.concat('{last}'));

function tableOf(sources: { readonly hosts?: string; readonly records?: string }): LocalTable {
  const table = new LocalTable();
  fill(table, sources);
  return table;
}

function fill(table: LocalTable, { hosts: first = '', records: second = '' }: Parameters<typeof tableOf>[0]): void {
  const sources = [inOneGo(readHosts(first, 'hosts')), inOneGo(readRecords(second, 'records'))];
  inOneGo(table.replace(inOneGo(mergeRecords(sources))));
}

function setUp() {
  const table = tableOf({ hosts, records });
  const { net, asker, catalog } = setUpForwarding(
    {
      records: table.table,
      config: { local: { ttlSeconds: 30, rules: parseRules(rules, 'rules') } },
      stubZones: [{ zone: 'svc.federation', nameservers: ['192.0.2.99'], sendsSource: true }],
    },
    ['192.0.2.53'],
  );
  addService(catalog, 'shop/round', { externalName: 'round.corp.example' });
  addImport(catalog, 'shop/checkout', { ips: ['243.0.0.7'] });
  catalog.flush();
  net.servers.set('192.0.2.53:53', answering('203.0.113.1'));
  net.servers.set('192.0.2.99:53', answering('198.51.100.9'));
  return { asker, net, table, catalog };
}

describe('dns local: static records, hosts, rules', () => {
  test.each([
    ['db A', '10.1.0.7'],
    ['db.corp.example AAAA', 'fd00::7'],
    ['DB.Corp.example MX', 'NODATA'],
    ['7.0.1.10.in-addr.arpa PTR', 'db.corp.example'],
    ['mail.corp.example MX', '[object Object]'],
    ['text.corp.example TXT', '"a ; b" "say "hi""'],
    ['_ldap._tcp.corp.example SRV', '389 db.corp.example'],
    ['corp.example A', '203.0.113.1'],
    // The cluster's own names and the names of its addresses go first.
    ['web.shop.svc.cluster.local A', '10.96.0.7'],
    ['7.0.96.10.in-addr.arpa PTR', 'web.shop.svc.cluster.local'],
    ['db.svc.federation A', '198.51.100.9'],
    // Aliases, within the file, into our own zones and upstream.
    ['far.corp.example A', 'www.example.com, 203.0.113.1'],
    ['into.corp.example A', 'web.shop.svc.cluster.local, 10.96.0.7'],
    ['into.corp.example CNAME', 'web.shop.svc.cluster.local'],
    // Rewrites: records go before rules, the longest suffix before shorter ones.
    ['old.example A', 'web.shop.svc.cluster.local, 10.96.0.7'],
    ['OLD.example CNAME', 'web.shop.svc.cluster.local'],
    ['away.example A', 'www.example.com, 203.0.113.1'],
    ['db.stage.example AAAA', 'db.corp.example, fd00::7'],
    ['a.deep.stage.example A', 'a.example.com, 203.0.113.1'],
    ['checkout.set.example A', 'checkout.shop.svc.clusterset.local, 243.0.0.7'],
    ['none.set.example A', 'NXDOMAIN none.shop.svc.clusterset.local'],
    // Once: what it leads to would match again.
    ['a.grow.example A', 'more.grow.example, 203.0.113.1'],
    ['other.example A', '203.0.113.1'],
    // Templates.
    ['a.b.apps.example AAAA', 'NODATA'],
    ['x.blocked.example A', 'NXDOMAIN'],
    ['blocked.example A', 'NXDOMAIN'],
    ['unblocked.example A', '203.0.113.1'],
    ['no.apps.example A', 'REFUSED'],
    ['ip-10-2-3-4.example A', '10.2.3.4'],
    ['ip-10-2-3-4.example TXT', '"made of ip-10-2-3-4.example"'],
    ['ip-10-2-3-444.example A', 'NODATA'],
  ])('%s -> %s', async (question, expected) => {
    expect(await setUp().asker.ask(question)).toBe(expected);
  });

  test('two addresses in one line of a file -> both, beginning with another one each time', async () => {
    const { asker } = setUp();
    const answers = [await asker.ask('a.apps.example A'), await asker.ask('alias.corp.example A')];
    expect(answers).toEqual([
      '192.0.2.10, 192.0.2.11',
      expect.stringMatching(/^db\.corp\.example, 10\.1\.0\.[78], 10/),
    ]);
    const first = await asker.ask('db.corp.example A');
    expect(await asker.ask('db.corp.example A')).not.toBe(first);
  });

  test('an alias of the file and one of the cluster lead to each other -> an error, in a moment', async () => {
    const { asker } = setUp();
    const reply = await asker.askPacket('round.corp.example A', { edns: true, transport: 'tcp' });
    expect(describeAnswer(reply)).toMatch(/^SERVFAIL/);
    expect(extendedErrorOf(reply)).toContain('cannot be resolved');
  });

  test('what is said not to exist -> a SOA of its suffix, with the TTL of the flag', async () => {
    const reply = await setUp().asker.askPacket('x.y.blocked.example A');
    expect(reply.authorities).toMatchObject([{ type: 'SOA', name: 'blocked.example', ttl: 30 }]);
  });

  test('no other records than before -> nothing is written; a removed line -> its name is asked upstream', async () => {
    const { asker, table } = setUp();
    const { serial } = table.table;
    fill(table, { hosts, records });
    expect(table.table.serial).toBe(serial);
    fill(table, { hosts: hosts.replace(/^10.*$/gm, '') });
    expect(await asker.ask('db A')).toBe('203.0.113.1');
    expect(await asker.ask('db.corp.example AAAA')).toBe('fd00::7');
    expect(await asker.ask('7.0.1.10.in-addr.arpa PTR')).toBe('203.0.113.1');
  });

  test('100,000 lines -> all are served; one more -> refused', async () => {
    const line = (i: number) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255} host-${i}.example\n`;
    const text = Array.from({ length: 100_000 }, (_, i) => line(i)).join('');
    const { asker } = setUpForwarding({
      records: tableOf({ hosts: text }).table,
      config: { local: { ttlSeconds: 30, rules: [] } },
    });
    expect(await asker.ask('host-99999.example A')).toBe('10.1.134.159');
    expect(() => inOneGo(readHosts(`${text}${line(7)}`, 'hosts'))).toThrow('hosts: at most 100000 lines are read');
  });

  test('a list of names to block, all of one address -> the name of the address is one of the first', async () => {
    const text = Array.from({ length: 1000 }, (_, i) => `0.0.0.0 ad-${i}.example\n`).join('');
    const { asker } = setUpForwarding({
      records: tableOf({ hosts: text }).table,
      config: { local: { ttlSeconds: 30, rules: [] } },
    });
    expect(await asker.ask('ad-999.example A')).toBe('0.0.0.0');
    expect(await asker.ask('0.0.0.0.in-addr.arpa PTR')).toMatch(/^ad-0\.example/);
  });
});

describe('dns local: what cannot be used', () => {
  test.each([
    ['db.example', 'hosts line 1: db.example: want an address and its names, such as 10.0.0.7 db.corp.example'],
    ['10.0.0.7 # db', 'hosts line 1: 10.0.0.7: it has no name'],
    ['10.0.0.7 a..b', 'hosts line 1: name a..b: it has an empty label'],
    [`10.0.0.7 ${'a'.repeat(64)}`, 'at most 63 are allowed'],
  ])('hosts: %s', (text, problem) => {
    expect(() => inOneGo(readHosts(text, 'hosts'))).toThrow(problem);
  });

  test.each([
    ['a.example 300 A 10.0.0.7', 'records line 1: a.example 300 A 10.0.0.7: want NAME TYPE DATA; the TTL'],
    ['a.example A 10.0.0.777', 'records line 1: 10.0.0.777: want an IPv4 address'],
    ['a.example A fd00::1', 'want an IPv4 address'],
    ['a.example SRV 0 5 389', 'want PRIORITY WEIGHT PORT NAME'],
    ['a.example SOA a b 1 1 1 1 1', 'want NAME TYPE DATA'],
    ['a.example CAA 0 issue "x"', String.raw`data of this type is given as \# LENGTH HEX`],
    [String.raw`a.example CAA \# 4 00`, 'want as many bytes in hex as the length says'],
    ['*.example A 10.0.0.7', 'for all names below another use a template with a suffix'],
    [`a.example TXT "${'x'.repeat(256)}"`, 'want texts of up to 255 bytes each'],
  ])('records: %s', (text, problem) => {
    expect(() => inOneGo(readRecords(text, 'records'))).toThrow(problem);
  });

  test('records: a CNAME beside others', () => {
    const text = 'a.example CNAME b.example\na.example A 10.0.0.7';
    expect(() => tableOf({ records: text })).toThrow('a.example: a name with a CNAME has no other records');
  });

  test.each([
    ['rewrites: {}', 'rules: rewrites: want a list'],
    ['rewrite: []', 'rules: rewrite: want the keys rewrites and templates'],
    ['[', 'rules: '],
    ['rewrites: [null]', 'rewrites 1: want a rule such as'],
    ['rewrites: [{exact: a.example}]', 'rewrites 1: to: want a text'],
    ['rewrites: [{exact: a.example, suffix: b.example, to: c.example}]', 'want one of exact, suffix and regex'],
    ['rewrites: [{exact: a.example, to: b..c}]', 'to: name b..c: it has an empty label'],
    ['rewrites: [{regex: "(a", to: b.example}]', 'rewrites 1: regex (a: '],
    ['rewrites: [{regex: "a", to: $1.example}]', 'rewrites 1: regex a: it has no group $1'],
    [`rewrites: [{regex: "(?P<x>a)", to: "\${y}.example"}]`, `it has no group \${y}`],
    [`rewrites: [{regex: "(a{1000}){10}", to: b.example}]`, 'rewrites 1: regex'],
    ['rewrites: [{exact: a.example, to: a.example}]', 'lead round in a circle: a.example -> a.example'],
    [
      'rewrites: [{exact: a.example, to: b.example}, {exact: b.example, to: a.example}]',
      'the rewrites of a.example lead round in a circle: a.example -> b.example -> a.example',
    ],
    [
      'rewrites: [{suffix: a.example, to: b.a.example}]',
      'a.example leads to b.a.example, which it matches itself: a loop',
    ],
    [
      'rewrites: [{suffix: a.example, to: x.b.example}, {suffix: b.example, to: a.example}]',
      'the rewrites of a.example lead round in a circle',
    ],
    ['templates: [{suffix: a.example}]', 'templates 1: want either rcode'],
    ['templates: [{suffix: a.example, rcode: BAD}]', 'templates 1: want either rcode'],
    ['templates: [{suffix: a.example, A: fd00::1}]', 'templates 1: fd00::1: want an IPv4 address'],
    ['templates: [{suffix: a.example, MX: x}]', 'templates 1: MX: no such field'],
    ['templates: [&a {suffix: a.example, rcode: NXDOMAIN}, *a]', 'rules: '],
  ])('rules: %s', (text, problem) => {
    expect(() => parseRules(text, 'rules')).toThrow(problem);
  });

  test('rules: too many, and too many patterns', () => {
    const of = (count: number, rule: (i: number) => string) =>
      `templates:\n${Array.from({ length: count }, (_, i) => `  - {${rule(i)}, rcode: NXDOMAIN}\n`).join('')}`;
    expect(
      parseRules(
        of(1000, (i) => `suffix: a${i}.example`),
        'rules',
      ),
    ).toHaveLength(1000);
    expect(() =>
      parseRules(
        of(1001, (i) => `suffix: a${i}.example`),
        'rules',
      ),
    ).toThrow('at most 1000 rules');
    expect(() =>
      parseRules(
        of(101, (i) => `regex: a${i}`),
        'rules',
      ),
    ).toThrow('at most 100 rules with a pattern');
  });
});
