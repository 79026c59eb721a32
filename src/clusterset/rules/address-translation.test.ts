import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inverse, readTranslations, translate } from './address-translation.ts';

const specs = [
  { from: '10.1.0.0/16', to: '100.64.0.0/16' },
  { from: '10.2.0.0/16', to: '100.65.1.0/24' },
  { from: '10.1.7.0/24', to: '100.66.0.0/24' },
  { from: 'fd00:1::/64', to: 'fd99::/64' },
];

describe('translation', () => {
  test.each([
    ['10.1.3.4', '100.64.3.4'],
    ['10.1.7.9', '100.66.0.9'],
    ['10.2.0.255', '100.65.1.255'],
    ['10.2.1.0', undefined],
    ['fd00:1::a:b', 'fd99::a:b'],
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:10.1.3.4', '::ffff:10.1.3.4'],
    ['no address', 'no address'],
  ])('translation: %s -> %s', (address, expected) => {
    expect(translate(address, readTranslations(specs).translations)).toBe(expected);
  });

  test('translation: none -> every address as it is', () => {
    expect(translate('10.1.3.4')).toBe('10.1.3.4');
    expect(readTranslations()).toEqual({ translations: [], notes: [] });
  });

  test('translation: ranges of two families, or none -> left out and said, the others hold', () => {
    const { translations, notes } = readTranslations([
      { from: '10.1.0.0/16', to: 'fd00::/64' },
      { from: 'ten', to: '10.0.0.0/8' },
      specs[0]!,
    ]);
    expect(translate('10.1.3.4', translations)).toBe('100.64.3.4');
    expect(notes).toEqual([
      'translation of 10.1.0.0/16 to fd00::/64 left out: they are not ranges of one address family',
      'translation of ten to 10.0.0.0/8 left out: they are not ranges of one address family',
    ]);
  });

  test('translation: there and back -> every address is its own again, so no two become one', () => {
    const there = readTranslations(specs).translations;
    const back = inverse(there);
    fc.assert(
      fc.property(fc.nat(255), fc.nat(255), (a, b) => {
        expect(translate(translate(`10.1.${a}.${b}`, there)!, back)).toBe(`10.1.${a}.${b}`);
      }),
    );
  });
});
