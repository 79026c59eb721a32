// Imports that are not as the records at the broker make them, in two looks at a home: what lags for a moment is no finding.
// A look costs as much as the home has services, so one pass looks at as many homes as its time allows, in turn.

import type { Clock } from '../../base/world.ts';
import { predict } from '../../clusterset/explain/predict.ts';
import { serviceStatus } from '../../clusterset/explain/service-status.ts';
import { brokerFacts, type SetState } from '../../clusterset/explain/set-state.ts';
import { sourceOfImport } from '../../clusterset/rules/routing/import-as.ts';
import type { HomeWatch } from '../homes/home-watch.ts';
import { idOf, type Landscape, setStateOf } from './landscape.ts';

const passMs = 40;

export class LagWatch {
  readonly #clock: Clock;
  readonly #looks = new Map<string, { readonly before: readonly string[]; readonly last: readonly string[] }>();
  #next = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Keys of services that were behind in the last two looks. */
  behind(cluster: string): readonly string[] {
    const { before, last } = this.#looks.get(cluster) ?? { before: [], last: [] };
    const earlier = new Set(before);
    return last.filter((key) => earlier.has(key));
  }

  look(landscape: Landscape): void {
    const members = landscape.homes.filter((one) => one.member !== undefined && one.clusterId !== '');
    const endMs = this.#clock.monotonicMs() + passMs;
    for (let looked = 0; looked < members.length && this.#clock.monotonicMs() < endMs; looked += 1) {
      const watch = members[this.#next % members.length]!;
      this.#next += 1;
      const state = setStateOf(landscape, { viewpoint: watch });
      const last = state === undefined || !watch.isCurrent() ? [] : behindIn(watch, state);
      this.#looks.set(idOf(watch), { before: this.#looks.get(idOf(watch))?.last ?? [], last });
    }
  }
}

function behindIn({ member, clusterId }: HomeWatch, state: SetState): string[] {
  if (member?.namespaces.state().kind !== 'live' || member.imports.namespaces() !== undefined) return [];
  const names = new Set(member.namespaces.values().map(({ metadata }) => metadata.name));
  const facts = brokerFacts(state).map((one) => (one.id === clusterId ? { ...one, namespaces: names } : one));
  const prediction = predict(facts, state.policy);
  const imports = new Map(Array.from(member.imports.values(), (one) => [sourceOfImport(one), one]));
  const isUnread = () => false;
  return prediction.keys.filter(
    (key) => serviceStatus({ key, prediction, imports, names, id: clusterId, isUnread }).import === 'behind',
  );
}
