import { expect, test } from 'vitest';
import { clustersetRangesOf, redirectsOf, uidOf, verifyMsOf } from './proxy-flags.ts';

const ranges = (mode: 'nftables' | 'userspace', ...range: string[]) => clustersetRangesOf({ mode, range });

test('proxy flags: no range -> none is given, so that the home is asked', () => {
  expect(ranges('nftables')).toBeUndefined();
});

test.each([
  [() => ranges('nftables', 'nonsense'), '--range nonsense: want a range such as'],
  [
    () => ranges('nftables', '127.100.0.0/16'),
    'the kernel forwards nothing to loopback addresses; use --mode userspace',
  ],
  [() => ranges('userspace', '243.0.0.0/12'), 'must be inside 127.0.0.0/8, not in 243.0.0.0/12'],
  [() => redirectsOf(['242.0.0.0/8:443=15001']), 'want CIDR:PORT/PROTOCOL=LOCALPORT'],
  [() => redirectsOf(['242.0.0.0/8:70000/tcp=15001']), 'want CIDR:PORT/PROTOCOL=LOCALPORT'],
  [() => redirectsOf(['242.0.0.0/8:443/sctp=15001']), 'want CIDR:PORT/PROTOCOL=LOCALPORT'],
  [() => uidOf('envoy'), '--envoy-uid envoy: want the number of a user'],
  [() => verifyMsOf('-1'), '--verify-minutes -1: want a number of minutes'],
])('proxy flags: what is typed wrong -> an error that names the flag (%#)', (read, message) => {
  expect(read).toThrow(message);
});

test('proxy flags: redirects of both families -> range, protocol and ports', () => {
  expect(redirectsOf(['242.0.0.0/8:443/tcp=15001', '[fd00::/8]:53/udp=15053'])).toMatchObject([
    { protocol: 'tcp', port: 443, toPort: 15_001, range: { family: 'IPv4' } },
    { protocol: 'udp', port: 53, toPort: 15_053, range: { family: 'IPv6' } },
  ]);
});
