import { expect, test } from 'vitest';
import { Backoff } from '../../base/backoff.ts';
import { codes } from '../../base/grpc/status.ts';
import { afterClose, reconnectBackoff } from './reconnect.ts';

test.each<[string, number, boolean, string]>([
  ['Unavailable (Appendix B: retry with a backoff) [000-37, 000-50]', codes.unavailable, false, 'backOff'],
  ['InvalidArgument (Appendix B: report error and don’t retry) [000-50]', codes.invalidArgument, false, 'stop'],
  ['Unauthenticated (Error Codes: must not retry) [000-34]', codes.unauthenticated, false, 'stop'],
  ['PermissionDenied', codes.permissionDenied, false, 'stop'],
  ['Unimplemented, and we know another version', codes.unimplemented, true, 'nextVersion'],
  ['Unimplemented, and there is no other', codes.unimplemented, false, 'stop'],
  ['OK: the owner ended the stream', codes.ok, false, 'backOff'],
  ['a broken connection', codes.internal, false, 'backOff'],
])('reconnect: %s', (_name, code, hasNextVersion, kind) => {
  expect(afterClose(code as never, { hasNextVersion })).toEqual({ kind });
});

test('reconnect: the owner stays away -> delays grow from at least 1 s, with jitter, to a minute [000-33]', () => {
  const random = { float: () => 0, bytes: () => new Uint8Array(), uuid: () => '' };
  const lowest = new Backoff(random, reconnectBackoff);
  const highest = new Backoff({ ...random, float: () => 0.999999 }, reconnectBackoff);
  expect(Array.from({ length: 7 }, () => lowest.nextMs())).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  expect(Math.round(highest.nextMs())).toBe(2000);
});
