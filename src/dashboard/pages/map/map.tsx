// The map: cards around a stage and lines of live traffic inside it; on a narrow screen a list. What is chosen is in the address.

import { useCallback, useMemo, useState } from 'react';
import { useChoice } from '../data/address.ts';
import { useRows } from '../data/hooks.ts';
import { perSecond } from '../parts/format.ts';
import { Mark } from '../parts/health.tsx';
import { Nothing } from '../parts/states.tsx';
import { Lines } from './lines.tsx';
import { MapList } from './list.tsx';
import { type MapCard, pictureOf } from './model.ts';
import { layOut, type Spot } from './stage.ts';
import '../styles/map.css';

/** Narrower than this, cards and lines have no room. */
const stageWidthMin = 600;

export function TrafficMap() {
  const [clusters, traffic] = [useRows('clusters'), useRows('traffic')];
  const [peers, external] = [useRows('peers'), useRows('external')];
  const { choice, choose } = useChoice();
  const service = useRows('services').find(({ key }) => key === choice.service);
  const [box, width] = useWidth();
  const picture = useMemo(
    () => pictureOf({ clusters, traffic, peers, external, region: choice.region }),
    [clusters, traffic, peers, external, choice.region],
  );
  const split = splitOf(picture.cards);
  const stage = useMemo(() => layOut(picture.cards.length, width, split), [picture.cards.length, width, split]);
  if (clusters.length === 0)
    return (
      <Nothing
        kinds={['clusters', 'clusterproperties']}
        none="No cluster has joined yet. Make a token with portolan token create, and run portolan join with it in each cluster."
      />
    );
  const lit = litBy(
    choice,
    service?.exporters.map(({ cluster }) => cluster),
    picture.cards,
  );
  const spots = new Map(picture.cards.map((card, index) => [card.id, stage.spots[index]!]));
  const pick = (card: MapCard) => {
    if (card.kind === 'region') choose({ region: card.name === choice.region ? '' : card.name });
    else if (card.kind === 'cluster') choose({ cluster: card.name === choice.cluster ? '' : card.name });
  };
  return (
    <div className="map" ref={box}>
      {width === 0 ? null : width < stageWidthMin ? (
        <MapList cards={picture.cards} lines={picture.lines} pick={pick} choice={choice} />
      ) : (
        <div className="stage" style={{ width: stage.width, height: stage.height }}>
          <Lines stage={stage} spots={spots} lines={picture.lines} lit={lit} />
          {picture.cards.map((card, index) => (
            <Card
              key={card.id}
              card={card}
              spot={stage.spots[index]!}
              isFirst={picture.cards[index - 1]?.place !== card.place && card.kind !== 'region'}
              isCompact={stage.isCompact}
              isFaded={lit.size > 0 && !lit.has(card.id)}
              isChosen={isChosen(card, choice)}
              pick={pick}
            />
          ))}
        </div>
      )}
    </div>
  );
}

/** Width inside the element that gets the reference. */
function useWidth(): [(element: HTMLDivElement | null) => (() => void) | undefined, number] {
  const [width, setWidth] = useState(0);
  const measure = useCallback((element: HTMLDivElement | null) => {
    if (element === null) return undefined;
    const watcher = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  return [measure, width];
}

/** Where the cards of one place end, as near to the middle as can be. */
function splitOf(cards: readonly MapCard[]): number {
  const ends = cards.flatMap(({ place }, index) => (index > 0 && cards[index - 1]?.place !== place ? [index] : []));
  const middle = cards.length / 2;
  return ends.toSorted((x, y) => Math.abs(x - middle) - Math.abs(y - middle))[0] ?? Math.ceil(middle);
}

function isChosen({ kind, name }: MapCard, choice: { readonly cluster: string }): boolean {
  return kind === 'cluster' && name === choice.cluster;
}

/** Cards that the choice is about; none is all of them. */
function litBy(
  { cluster }: { readonly cluster: string },
  exporters: readonly string[] | undefined,
  cards: readonly MapCard[],
): ReadonlySet<string> {
  const wanted = exporters ?? (cluster === '' ? [] : [cluster]);
  return new Set(cards.filter((card) => card.clusters.some((id) => wanted.includes(id))).map(({ id }) => id));
}

interface CardProps {
  readonly card: MapCard;
  readonly spot: Spot;
  readonly isFirst: boolean;
  readonly isCompact: boolean;
  readonly isFaded: boolean;
  readonly isChosen: boolean;
  readonly pick: (card: MapCard) => void;
}

function Card({ card, spot, isFirst, isCompact, isFaded, isChosen, pick }: CardProps) {
  const place = { left: spot.x, top: spot.y, width: spot.width, height: spot.height };
  const says = `${card.kind} ${card.name}: ${card.health}, ${card.says}, ${perSecond(card.perSecond)} connections`;
  const isOpenable = card.kind === 'cluster' || card.kind === 'region';
  const shape = `spot spot-${card.health} ${isChosen ? 'is-chosen' : ''} ${isCompact ? 'is-compact' : ''}`;
  const inner = (
    <>
      <span className="spot-head">
        <Mark health={card.health} /> <span className="spot-name">{card.name}</span>
      </span>
      <span className="spot-says">
        {card.perSecond > 0 ? `${perSecond(card.perSecond)}` : card.says}
        {card.failedPerSecond > 0 ? <span className="spot-failed"> {perSecond(card.failedPerSecond)} fail</span> : null}
      </span>
      {isCompact ? null : <span className="spot-says">{card.perSecond > 0 ? card.says : ''}</span>}
    </>
  );
  return (
    <div className={isFaded ? 'is-faded' : ''}>
      {isFirst ? (
        <span className="spot-place" style={{ left: spot.x, top: spot.y - 20, width: spot.width }}>
          {card.place}
        </span>
      ) : null}
      {isOpenable ? (
        <button
          type="button"
          className={shape}
          style={place}
          title={says}
          aria-label={says}
          aria-pressed={isChosen}
          onClick={() => pick(card)}
        >
          {inner}
        </button>
      ) : (
        <div className={shape} style={place} title={says}>
          {inner}
        </div>
      )}
    </div>
  );
}
