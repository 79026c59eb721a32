// Names that several resources match on one port, with protocols that one connection can be about: only the first decides.
// Pure. Rules come and go one by one.

import { canMeet } from './choose.ts';
import { byPrecedence, ownerId, type Rule } from './rule.ts';

/** Texts of one rule, and resources around it that are looked at. */
const namedMax = 10;
const lookedAtMax = 1000;

export class NameOverlaps {
  /** By port and name; the rule that wins first. */
  readonly #rules = new Map<string, Rule[]>();

  add(rules: readonly Rule[]): void {
    for (const rule of rules) {
      const key = keyOf(rule);
      if (key === undefined) continue;
      const equal = this.#rules.get(key) ?? [];
      const at = equal.findIndex((other) => byPrecedence(rule, other) < 0);
      equal.splice(at < 0 ? equal.length : at, 0, rule);
      this.#rules.set(key, equal);
    }
  }

  remove(rules: readonly Rule[]): void {
    for (const rule of rules) {
      const key = keyOf(rule) ?? '';
      const equal = this.#rules.get(key);
      const at = equal?.findIndex((other) => byPrecedence(rule, other) === 0) ?? -1;
      if (equal === undefined || at < 0) continue;
      equal.splice(at, 1);
      if (equal.length === 0) this.#rules.delete(key);
    }
  }

  /** Ids of the resources that match a name of these. */
  neighbours(rules: readonly Rule[]): Set<string> {
    const near = rules.flatMap((rule) => (this.#rules.get(keyOf(rule) ?? '') ?? []).slice(0, lookedAtMax));
    return new Set(near.map(({ resource }) => ownerId(resource)));
  }

  textsOf(rules: readonly Rule[]): string[] {
    return [...new Set(rules.flatMap((rule) => this.#textsOf(rule)))];
  }

  #textsOf(rule: Rule): string[] {
    const others = (this.#rules.get(keyOf(rule) ?? '') ?? [])
      .slice(0, lookedAtMax)
      .filter(
        ({ resource, protocol }) => ownerId(resource) !== ownerId(rule.resource) && canMeet(protocol, rule.protocol),
      );
    const winner = others.find((other) => byPrecedence(other, rule) < 0);
    if (winner !== undefined) return [textOf(winner, rule)];
    return others.slice(0, namedMax).map((loser) => textOf(rule, loser));
  }
}

function keyOf({ port, match }: Rule): string | undefined {
  if (match.kind === 'name') return `${port} ${match.name}`;
  return match.kind === 'wildcard' ? `${port} *${match.suffix}` : undefined;
}

function textOf(winner: Rule, loser: Rule): string {
  const [id, other] = [ownerId(winner.resource), ownerId(loser.resource)];
  const [one, two] = [id, other].toSorted() as [string, string];
  const name = (keyOf(winner) ?? '').split(' ')[1];
  return `${one} and ${two} match the same name ${name}; ${id} wins on port ${winner.port}: it is older, or comes first by name`;
}
