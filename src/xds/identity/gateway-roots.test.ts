import { expect, test } from 'vitest';
import { issueCertificate } from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';
import { backdateMs } from '../../kube/client/kept-authority.ts';
import { type KeptRoots, planRoots, publishedRoots } from './gateway-roots.ts';

const hourMs = 3_600_000;
const times = { lifeMs: 300 * hourMs, overlapMs: 10 * hourMs, formerMs: 20 * hourMs };
const startMs = Date.UTC(2026, 0, 1);

function made(nowMs: number) {
  const key = generatePrivateKey();
  const subject = { commonName: `root of hour ${(nowMs - startMs) / hourMs}` };
  const life = { serial: Buffer.from([1]), notBeforeMs: nowMs - backdateMs, notAfterMs: nowMs + times.lifeMs };
  return { certificate: issueCertificate({ subject, key, use: { kind: 'authority' }, ...life }), key };
}

test('roots: hour by hour -> the next is published before it signs, the former until its certificates have ended', () => {
  let kept: KeptRoots | undefined;
  const steps: string[] = [];
  for (let hour = 0; hour <= 260; hour += 1) {
    const nowMs = startMs + hour * hourMs;
    const next = planRoots(kept, { nowMs, times, make: () => made(nowMs) });
    if (next !== kept) steps.push(`${hour}: ${Object.keys(next).join(' ')}, ${publishedRoots(next).length} published`);
    // Whoever knew the roots of the hour before can verify what is signed now.
    if (kept !== undefined) expect(publishedRoots(kept)).toContain(next.signing.certificate.trim());
    kept = next;
  }
  expect(steps).toEqual([
    '0: signing, 1 published',
    '200: signing next, 2 published',
    '210: signing former, 2 published',
    '230: signing, 1 published',
  ]);
});
