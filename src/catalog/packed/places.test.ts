import fc from 'fast-check';
import { expect, test } from 'vitest';
import { tierOf } from '../../clusterset/rules/choice/locality.ts';
import { type ClusterPlace, Places, PlacesReader, tier } from './places.ts';

const name = fc.constantFrom('', 'a', 'b', 'c');
const place = fc.record({ zone: name, region: name });

/** The packed tier for each of the five of the choice: a packed place knows no zone of a single endpoint. */
const packedTier = [undefined, tier.own, tier.own, tier.zone, tier.region, tier.rest];

test('places: random clusters -> the packed rule tells the same distance as the locality rule', () => {
  fc.assert(
    fc.property(fc.array(place, { minLength: 2, maxLength: 5 }), (given) => {
      const clusters = given.map((each, index): ClusterPlace => ({ id: `c${index}`, ...each }));
      const places = new Places(() => {});
      const ordinals = clusters.map((cluster) => places.place(cluster));
      const reader = new PlacesReader(places.memory);
      for (const [i, from] of clusters.entries()) {
        for (const [j, to] of clusters.entries()) {
          const told = tierOf({ cluster: from.id, ...given[i] }, { cluster: to.id, ...given[j] });
          expect(reader.tierOf(reader.standAt(ordinals[i]!), ordinals[j]!)).toBe(packedTier[told]);
        }
      }
    }),
    { numRuns: 2000 },
  );
});
