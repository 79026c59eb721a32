import { expect, test } from 'vitest';
import { parseRange } from '../../base/net/ip.ts';
import { redirectElements } from './redirects.ts';

const redirect = (range: string, toPort: number, port = 443, protocol: 'tcp' | 'udp' = 'tcp') => ({
  range: parseRange(range)!,
  protocol,
  port,
  toPort,
});
const texts = (...redirects: ReturnType<typeof redirect>[]) =>
  redirectElements(redirects).map(({ map, key, value }) => `${map} ${key} -> ${value}`);

test.each([
  ['one address', [redirect('242.0.0.1', 15_001)], ['redirecttcp4 242.0.0.1 . 443 -> 15001']],
  [
    'a range inside another -> the larger one is cut around it',
    [redirect('10.0.0.0/8', 15_001), redirect('10.1.0.0/16', 15_002)],
    [
      'redirecttcp4 10.0.0.0-10.0.255.255 . 443 -> 15001',
      'redirecttcp4 10.1.0.0-10.1.255.255 . 443 -> 15002',
      'redirecttcp4 10.2.0.0-10.255.255.255 . 443 -> 15001',
    ],
  ],
  [
    'the same target inside and outside -> one element',
    [redirect('10.0.0.0/8', 15_001), redirect('10.1.0.0/16', 15_001)],
    ['redirecttcp4 10.0.0.0-10.255.255.255 . 443 -> 15001'],
  ],
  [
    'the same range twice -> the first',
    [redirect('10.0.0.0/8', 1), redirect('10.0.0.0/8', 2)],
    ['redirecttcp4 10.0.0.0-10.255.255.255 . 443 -> 1'],
  ],
  [
    'other ports, protocols and families -> apart',
    [redirect('10.0.0.1', 1), redirect('10.0.0.1', 2, 80), redirect('10.0.0.1', 3, 443, 'udp'), redirect('fd00::1', 4)],
    [
      'redirecttcp4 10.0.0.1 . 443 -> 1',
      'redirecttcp4 10.0.0.1 . 80 -> 2',
      'redirectudp4 10.0.0.1 . 443 -> 3',
      'redirecttcp6 fd00::1 . 443 -> 4',
    ],
  ],
])('redirects: %s', (_what, redirects, expected) => {
  expect(texts(...redirects)).toEqual(expected);
});
