// The map in words, for narrow screens: each place with its cards, and where their clients connect to.

import { perSecond } from '../parts/format.ts';
import { Mark } from '../parts/health.tsx';
import type { MapCard, MapLine } from './model.ts';

interface MapListProps {
  readonly cards: readonly MapCard[];
  readonly lines: readonly MapLine[];
  readonly choice: { readonly cluster: string; readonly region: string };
  readonly pick: (card: MapCard) => void;
}

export function MapList({ cards, lines, choice, pick }: MapListProps) {
  const names = new Map(cards.map(({ id, name }) => [id, name]));
  return (
    <ul className="map-list">
      {cards.map((card) => {
        const { id, kind, name, place, health, says } = card;
        const to = lines.filter(({ from, perSecond: rate }) => from === id && rate > 0);
        const isOpen = kind === 'cluster' ? name === choice.cluster : name === choice.region;
        return (
          <li key={id}>
            <div className="spot-head">
              <Mark health={health} />
              {kind === 'cluster' || kind === 'region' ? (
                <button type="button" className="link spot-name" aria-pressed={isOpen} onClick={() => pick(card)}>
                  {name}
                </button>
              ) : (
                <span className="spot-name">{name}</span>
              )}
              <span className="small">
                {kind === 'region' ? '' : `${place}, `}
                {says}
              </span>
            </div>
            {to.map((line) => (
              <div key={line.to} className="small">
                to {names.get(line.to)} {perSecond(line.perSecond)}
                {line.way === 'gateway' ? ' through a gateway' : ''}
                {line.failedPerSecond > 0 ? (
                  <span className="spot-failed">, {perSecond(line.failedPerSecond)} fail</span>
                ) : null}
              </div>
            ))}
          </li>
        );
      })}
    </ul>
  );
}
