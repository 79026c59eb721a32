// Lines of the map: width by rate, colour by the share that fails, dashes for gateways, dots that move while traffic flows.

import { perSecond } from '../parts/format.ts';
import { lineHealth, lineWidth, type MapLine } from './model.ts';
import { curveOf, pathOf, pointOn, type Spot, type Stage } from './stage.ts';

interface LinesProps {
  readonly stage: Stage;
  readonly spots: ReadonlyMap<string, Spot>;
  readonly lines: readonly MapLine[];
  /** Ids of the cards that are lit; none is all. */
  readonly lit: ReadonlySet<string>;
}

/** Each dot is a moving element. */
const movingMax = 40;
const labelsMax = 8;

export function Lines({ stage, spots, lines, lit }: LinesProps) {
  const drawn = lines
    .flatMap((line) => {
      const [from, to] = [spots.get(line.from), spots.get(line.to)];
      if (from === undefined || to === undefined) return [];
      const curve = curveOf(from, to, stage.inside);
      const isLit = lit.size === 0 || lit.has(line.from) || lit.has(line.to);
      return [{ line, curve, isLit, health: lineHealth(line) }];
    })
    .sort((a, b) => a.line.perSecond - b.line.perSecond);
  const busy = drawn.filter(({ line, isLit }) => line.perSecond > 0 && isLit);
  const labelled = busy.length <= labelsMax || lit.size > 0 ? busy.slice(-labelsMax) : [];
  return (
    <svg className="lines" width={stage.width} height={stage.height} aria-hidden="true">
      {drawn.map(({ line, curve, isLit, health }) => (
        <path
          key={`${line.from} ${line.to}`}
          className={`line line-${health} line-${line.way} ${line.perSecond > 0 ? '' : 'is-idle'} ${isLit ? '' : 'is-faded'}`}
          d={pathOf(curve)}
          strokeWidth={lineWidth(line.perSecond)}
        />
      ))}
      {busy.slice(-movingMax).map(({ line, curve, health }) => (
        <circle
          key={`${line.from} ${line.to}`}
          className={`moving moving-${health}`}
          r={2 + lineWidth(line.perSecond) / 3}
          style={{ offsetPath: `path("${pathOf(curve)}")` }}
        />
      ))}
      {labelled.map(({ line, curve, health }) => {
        const at = pointOn(curve, 0.32);
        return (
          <text key={`${line.from} ${line.to}`} className={`line-text line-text-${health}`} x={at.x} y={at.y - 5}>
            {perSecond(line.perSecond)}
            {line.failedPerSecond > 0 ? `, ${perSecond(line.failedPerSecond)} fail` : ''}
          </text>
        );
      })}
    </svg>
  );
}
