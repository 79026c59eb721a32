import { expect, test } from 'vitest';
import type { KnownMember } from '../../clusterset/explain/broker-state.ts';
import { refuseUnknownSources, sourceRangesFor } from './access.ts';

const member = (id: string, spec: object, sourceRanges?: string[]) => {
  const cluster = { metadata: { name: id }, spec: { namespace: id, ...spec } };
  return { id, cluster, record: { sourceRanges } } as unknown as KnownMember;
};

test('broker init --access Exported: members without source ranges, or with the same -> refused, each named', () => {
  const known = member('east', { sourceRanges: ['10.1.0.0/16'] });
  expect(() => refuseUnknownSources('Exported', [known, member('west', {}), member('north', {})])).toThrow(
    'access Exported: no source ranges of north, west',
  );
  expect(() => refuseUnknownSources('Exported', [known, member('west', { sourceRanges: ['10.1.0.0/24'] })])).toThrow(
    '10.1.0.0-10.1.0.255 belongs to east, west',
  );
  expect(refuseUnknownSources('Exported', [known])).toEqual([]);
});

test('broker init --access Audit: a member without source ranges -> a note; Open -> none', () => {
  const members = [member('west', {})];
  expect(refuseUnknownSources('Audit', members)[0]).toContain('note: access Audit: no source ranges of west');
  expect(refuseUnknownSources('Open', members)).toEqual([]);
});

test('broker accept: translated addresses -> reported source ranges are not taken, those that the admin gives are', () => {
  const translated = member('east', { translations: [{ from: '10.1.0.0/16', to: '10.9.0.0/16' }] }, ['10.1.0.0/16']);
  expect(sourceRangesFor(translated, undefined)).toEqual({});
  expect(sourceRangesFor(translated, ['10.9.0.0/16'])).toEqual({ sourceRanges: ['10.9.0.0/16'] });
});
