// The root of this cluster's own trust domain, and how it is replaced: the next one is published before it signs, and the
// former one for as long as certificates that it signed may be shown. The state is the certificates themselves. Pure.

import type { Credentials } from '../../base/x509/certificates.ts';
import { backdateMs } from '../../kube/client/kept-authority.ts';
import { type Life, lifeOf, renewAtMs } from './proxy-files.ts';

export interface KeptRoots {
  readonly signing: Credentials;
  /** Published, and signs when all members have had time to read it. */
  readonly next?: Credentials;
  /** PEM of the one that signed before. */
  readonly former?: string;
}

export interface RootTimes {
  readonly lifeMs: number;
  /** From the publication of a root to its first signature. */
  readonly overlapMs: number;
  /** From then to the end of the former one: longer than any certificate that it signed. */
  readonly formerMs: number;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** A stolen certificate of a proxy or a gateway is good until it ends. */
export const leafLifeMs = dayMs;

export const rootTimes: RootTimes = { lifeMs: 365 * dayMs, overlapMs: 2 * dayMs, formerMs: 2 * dayMs };

/** The same object if there is nothing to do; at most one step at a time. */
export function planRoots(
  kept: KeptRoots | undefined,
  { nowMs, times, make }: { readonly nowMs: number; readonly times: RootTimes; readonly make: () => Credentials },
): KeptRoots {
  if (kept === undefined) return { signing: make() };
  const { signing, next, former } = kept;
  if (next !== undefined) return ageOf(next) >= times.overlapMs ? { signing: next, former: signing.certificate } : kept;
  if (former !== undefined) return ageOf(signing) >= times.overlapMs + times.formerMs ? { signing } : kept;
  return nowMs >= renewAtMs(realLife(signing)) ? { signing, next: make() } : kept;

  function ageOf(root: Credentials): number {
    return nowMs - realLife(root).startMs;
  }
}

/** Since it was made. */
function realLife({ certificate }: Credentials): Life {
  const { startMs, endMs } = lifeOf(certificate);
  return { startMs: startMs + backdateMs, endMs };
}

/** All that other members must trust, the signing one first. */
export function publishedRoots({ signing, next, former }: KeptRoots): string[] {
  const all = [signing.certificate, ...(next ? [next.certificate] : []), ...(former ? [former] : [])];
  return all.map((pem) => pem.trim());
}
