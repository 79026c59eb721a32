// The rights that a client was refused lately: by RBAC, not by quotas or admission. One that is used with success is taken off,
// and one that is not tried again after a while. Bounded.

import type { ApiError } from '../objects/api-error.ts';

const denial =
  /cannot ([a-z]+) resource "([^"]{1,200})"(?: in API group "([^"]{0,200})")?(?: in the namespace "([^"]{1,63})")?/;
const keptMax = 20;
/** Lists without a new refusal after which it is forgotten: an hour, where a Lease is renewed every 10 s. */
const listsMax = 360;

interface Refused {
  readonly text: string;
  lists: number;
}

export class MissingRights {
  readonly #refused = new Map<string, Refused>();

  refused(method: string, path: string, error: ApiError): void {
    const found = error.code === 403 ? denial.exec(error.message) : null;
    if (found === null) return;
    const [, verb = '', resource = '', group = '', namespace] = found;
    const name = group === '' ? resource : `${resource}.${group}`;
    const key = keyOf(method, path);
    if (this.#refused.size >= keptMax && !this.#refused.has(key)) return;
    this.#refused.set(key, { text: `${verb} ${name}${namespace === undefined ? '' : ` in ${namespace}`}`, lists: 0 });
  }

  allowed(method: string, path: string): void {
    if (this.#refused.size > 0) this.#refused.delete(keyOf(method, path));
  }

  /** Such as `list leases.coordination.k8s.io in portolan-system`. */
  list(): string[] {
    for (const [key, one] of this.#refused) {
      one.lists += 1;
      if (one.lists > listsMax) this.#refused.delete(key);
    }
    return [...new Set(Array.from(this.#refused.values(), ({ text }) => text))].sort();
  }
}

/** A watch is another right than a list of the same path. */
function keyOf(method: string, path: string): string {
  const [plain = '', query = ''] = path.split('?');
  return `${method} ${plain}${query.includes('watch=') ? ' watch' : ''}`;
}
