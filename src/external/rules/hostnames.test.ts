import { describe, expect, test } from 'vitest';
import type { HostnameGenerator } from '../kinds/hostname-generator.ts';
import type { MeshExternalService } from '../kinds/mesh-external-service.ts';
import { externalService, hostnameGenerator, type ServiceWords } from '../testing/services.ts';
import { HostnameIndex, type NameOwner } from './hostnames.ts';
import { ownerId, ownerOf } from './rule.ts';
import { visibilityIn } from './visibility.ts';

const vip = (value: string, words: ServiceWords = {}) =>
  externalService(`{ match: [{ type: InternalVIP, ${value === '' ? '' : `value: ${value},`} port: 80 }] }`, words);
const seedGenerator = hostnameGenerator(
  'k8s-zone-hostnames',
  '{ targetRef: { kind: MeshExternalService, tags: { my.label.io/service: my-service } }, template: "{{ name }}.svc.meshext.local" }',
);
const labels = { 'my.label.io/service': 'my-service' };

interface HostnameInput {
  readonly resources: readonly MeshExternalService[];
  readonly generators?: readonly HostnameGenerator[];
  readonly others?: readonly NameOwner[];
  readonly zones?: readonly string[];
}

const idOf = (object: MeshExternalService) => ownerId(ownerOf(object));

function plan({ resources, generators = [], others = [], zones = [] }: HostnameInput): HostnameIndex {
  const othersAt = (name: string) =>
    others.filter(({ hostnames }) => hostnames.join(' ').toLowerCase().split(' ').includes(name));
  const index = new HostnameIndex({ generators, zones, othersAt });
  for (const object of resources) index.set(idOf(object), object);
  return index;
}

function lines(input: HostnameInput): string[] {
  const index = plan(input);
  return input.resources
    .map(idOf)
    .flatMap((id) =>
      index
        .addressesOf(id)
        .map((address) =>
          [id, address.hostname, address.status, `${address.origin.kind}/${address.origin.name}`, address.reason ?? '']
            .join(' ')
            .trim(),
        ),
    );
}

describe('hostnames', () => {
  test('hostnames: the generator of the seed -> mydomain.svc.meshext.local, with its origin [004-56, 004-57]', () => {
    expect(lines({ resources: [vip('', { name: 'mydomain', labels })], generators: [seedGenerator] })).toEqual([
      'mydomain mydomain.svc.meshext.local Available HostnameGenerator/k8s-zone-hostnames',
    ]);
    expect(lines({ resources: [vip('', { name: 'mydomain' })], generators: [seedGenerator] })).toEqual([]);
  });

  test('hostnames: a label is missing, or the result is no name -> NotAvailable with the reason [004-57, 004-58]', () => {
    const byLabel = hostnameGenerator('g', '{ selector: { matchLabels: {} }, template: "{{ label \\"x\\" }}.a.b" }');
    expect(lines({ resources: [vip('')], generators: [byLabel] })).toEqual([
      'example {{ label "x" }}.a.b NotAvailable HostnameGenerator/g label "x" is missing',
    ]);
    const odd = lines({ resources: [vip('', { labels: { x: 'A_b' } })], generators: [byLabel] });
    expect(odd[0]).toContain('NotAvailable HostnameGenerator/g "A_b.a.b" is not a hostname');
  });

  test('hostnames: several generators -> several addresses', () => {
    const two = ['a', 'b'].map((g) => hostnameGenerator(g, `{ selector: {}, template: "{{ name }}.${g}.ext" }`));
    expect(lines({ resources: [vip('')], generators: two })).toEqual([
      'example example.a.ext Available HostnameGenerator/a',
      'example example.b.ext Available HostnameGenerator/b',
    ]);
  });

  test('hostnames: more than 1,000 selected -> none, unless it is allowed [004-60]', () => {
    const resources = Array.from({ length: 1001 }, (_, i) => vip('', { name: `s${i}` }));
    const spec = '{ selector: {}, template: "{{ name }}.a.ext" }';
    expect(lines({ resources, generators: [hostnameGenerator('g', spec)] })).toEqual([]);
    const generator = hostnameGenerator('g', spec);
    const index = plan({ resources, generators: [generator] });
    expect(index.selected(generator)).toBe(1001);
    // One fewer, and all of them have their names.
    expect(index.set('s7', undefined).size).toBe(1000);
    expect(index.addressesOf('s8')).toMatchObject([{ hostname: 's8.a.ext', status: 'Available' }]);
    const allowed = hostnameGenerator('g', spec, { 'portolan.dev/allow-many': 'true' });
    expect(lines({ resources, generators: [allowed] })).toHaveLength(1001);
  });

  test('hostnames: a clash -> the oldest has it, the other is told who; any order gives the same [004-53]', () => {
    const older = vip('m.ext', { name: 'z', origin: 'broker', created: '2025-01-01T00:00:00Z' });
    const younger = vip('M.ext', { name: 'a' });
    const wanted = [
      'a m.ext NotAvailable MeshExternalService/a not available because of the clash with MeshExternalService broker/z, which is older',
      'broker/z m.ext Available MeshExternalService/z',
    ];
    expect(lines({ resources: [older, younger] }).sort()).toEqual(wanted);
    expect(lines({ resources: [younger, older] }).sort()).toEqual(wanted);
  });

  test('hostnames: an object at home that claims to be a copy from long ago -> as old as the API server says', () => {
    const forged = vip('m.ext', {
      name: 'b',
      created: '2026-02-02T00:00:00Z',
      annotations: { 'portolan.dev/created': '1970-01-02T00:00:00Z' },
    });
    const copy = vip('m.ext', { name: 'a', origin: 'broker', created: '2026-02-01T00:00:00Z' });
    expect(lines({ resources: [forged, copy] })[0]).toContain('clash with MeshExternalService broker/a');
  });

  test('hostnames: a long name that cannot be -> as much of it as a status takes', () => {
    const text = `{{ label "x" }}${'a'.repeat(600)}.b`;
    const generator = hostnameGenerator('g', JSON.stringify({ selector: {}, template: text }));
    expect(plan({ resources: [vip('')], generators: [generator] }).addressesOf('example')[0]!.hostname.length).toBe(
      512,
    );
  });

  test('hostnames: equal age -> by name', () => {
    const pair = [vip('m.ext', { name: 'a', origin: 'broker' }), vip('m.ext', { name: 'b' })];
    expect(lines({ resources: pair })[1]).toContain('clash with MeshExternalService broker/a');
  });

  test('hostnames: resources of one origin -> share a name', () => {
    expect(lines({ resources: [vip('m.ext', { name: 'a' }), vip('m.ext', { name: 'b' })] })).toEqual([
      'a m.ext Available MeshExternalService/a',
      'b m.ext Available MeshExternalService/b',
    ]);
  });

  test("hostnames: a peer's service has the name -> the older has it, whatever its kind", () => {
    const other = { kind: 'PeerService', key: 'portolan-system/acme.x', hostnames: ['M.ext'] };
    const resources = [vip('m.ext')];
    const younger = lines({ resources, others: [{ ...other, createdMs: Date.parse('2027-01-01') }] });
    expect(younger).toEqual(['example m.ext Available MeshExternalService/example']);
    const older = lines({ resources, others: [{ ...other, createdMs: 1 }] });
    expect(older[0]).toContain('clash with PeerService portolan-system/acme.x');
  });

  test('hostnames: a name in a zone of ours -> NotAvailable', () => {
    const [line] = lines({ resources: [vip('m.shop.svc.cluster.local')], zones: ['cluster.local'] });
    expect(line).toContain('it lies in the zone cluster.local');
  });
});

describe('visibility', () => {
  const place = { clusterset: 'prod', cluster: 'east' };
  const inEast = (words: ServiceWords) => visibilityIn(place, vip('m.ext', words)).isVisible;

  test.each<[string, ServiceWords, boolean]>([
    ['at home without labels', {}, true],
    ['at the broker without labels', { origin: 'broker' }, true],
    ['at the broker, of this cluster', { origin: 'broker', labels: { 'kuma.io/zone': 'east' } }, true],
    ['at the broker, of another cluster', { origin: 'broker', labels: { 'kuma.io/zone': 'west' } }, false],
    ['at home, of another cluster', { labels: { 'kuma.io/zone': 'west' } }, false],
    ['of this clusterset', { labels: { 'kuma.io/mesh': 'prod' } }, true],
    ['of another clusterset', { origin: 'broker', labels: { 'kuma.io/mesh': 'test' } }, false],
    ['of the default one, in a set of another name', { labels: { 'kuma.io/mesh': 'default' } }, true],
    ['of the default one, at the broker', { origin: 'broker', labels: { 'kuma.io/mesh': 'default' } }, true],
  ])('visibility: %s -> visible or not [004-03, 004-04]', (_where, words, isVisible) =>
    expect(inEast(words)).toBe(isVisible),
  );

  test('visibility: made at a home with the label of another cluster -> visible nowhere, and it is said', () => {
    const verdict = visibilityIn(place, vip('m.ext', { labels: { 'kuma.io/zone': 'west' } }));
    expect(verdict).toMatchObject({ reason: expect.stringContaining('visible nowhere') });
  });
});
