import { describe, expect, test } from 'vitest';
import type { Cluster } from '../../kinds/cluster.ts';
import { audienceId, nameSecretOf, sealedName } from './opaque-names.ts';
import { fingerprintOf, memberKey } from './trusted-keys.ts';

const publicKey = Buffer.alloc(32, 5);
const fingerprint = fingerprintOf(publicKey);
const cluster = (confirmed: string | undefined, reported: string | null | undefined): Cluster => ({
  ...{ apiVersion: 'portolan.dev/v1alpha1', kind: 'Cluster', metadata: { name: 'west' } },
  spec: { namespace: 'prod-m-west', ...(confirmed === undefined ? {} : { sealingKey: confirmed }) },
  status: { sealingKey: reported },
});
const reported = publicKey.toString('base64');

describe('the key of a member', () => {
  test.each<[string, Cluster | undefined, string | undefined, string]>([
    ['confirmed, never seen before', cluster(fingerprint, reported), undefined, 'trusted'],
    ['confirmed and as before', cluster(fingerprint, reported), fingerprint, 'trusted'],
    ['confirmed, and not as before', cluster(fingerprint, reported), 'SHA256:other', 'KeyChanged'],
    ['not confirmed', cluster(undefined, reported), fingerprint, 'NotConfirmed'],
    ['another one is confirmed', cluster('SHA256:other', reported), fingerprint, 'NotConfirmed'],
    ['none', cluster(fingerprint, undefined), undefined, 'NoKey'],
    ['null', cluster(fingerprint, null), undefined, 'NoKey'],
    ['too short', cluster(fingerprint, reported.slice(4)), undefined, 'NoKey'],
    ['no member', undefined, undefined, 'NoKey'],
  ])('%s', (_what, member, pinned, wanted) => {
    const found = memberKey(member, pinned);
    expect(found.kind === 'trusted' ? found.kind : found.reason).toBe(wanted);
  });
});

test('names of sealed records: the same for the same thing, whatever the order; others cannot make them', () => {
  const [one, other] = [nameSecretOf(Buffer.alloc(32, 1)), nameSecretOf(Buffer.alloc(32, 2))];
  const record = { kind: 'ServiceShard', name: 'ledger.shop' };
  expect(sealedName(one, record)).toBe(sealedName(one, record));
  expect(sealedName(one, record)).not.toBe(sealedName(other, record));
  expect(sealedName(one, record)).toMatch(/^s-[0-9a-f]{40}$/);
  expect(sealedName(one, record)).not.toBe(sealedName(one, { ...record, kind: 'EndpointShard' }));
  expect(audienceId(one, ['west', 'north', 'west'])).toBe(audienceId(one, ['north', 'west']));
  expect(audienceId(one, undefined)).not.toBe(audienceId(one, []));
  expect(audienceId(one, ['west'])).toMatch(/^a-[0-9a-f]{40}$/);
});
