// Reads the table of choice-cases.ts.

import type { Routing, RoutingShift } from '../../routing/routing.ts';
import { choiceCases } from './choice-cases.ts';

export interface CaseEndpoints {
  /** As the table has it: `west@a`, `east-dead`. */
  readonly label: string;
  readonly cluster: string;
  readonly zone: string | undefined;
  readonly state: 'ready' | 'unready' | 'draining' | 'dead' | 'port' | 'other';
  readonly count: number;
}

/** Percent of new connections by label. */
type Percents = ReadonlyMap<string, number>;

export interface ChoiceCase {
  readonly title: string;
  readonly endpoints: readonly CaseEndpoints[];
  readonly isNearestFirst: boolean;
  readonly routing: Routing;
  readonly wanted: Percents;
  /** What names without an address lead to. */
  readonly wantedOfNames: Percents;
  /** Where Envoy and gRPC send them. */
  readonly wantedOfXds: Percents;
}

export const casePlaces = {
  east: { zone: 'a', region: 'eu' },
  north: { zone: 'a', region: 'eu' },
  west: { zone: 'b', region: 'eu' },
  south: { zone: 'c', region: 'us' },
} as const;

export const caseSelf = 'east';

export function readChoiceCases(): ChoiceCase[] {
  return choiceCases
    .split('\n')
    .filter((line) => line.includes('|'))
    .map(readLine);
}

function readLine(line: string): ChoiceCase {
  const [title = '', endpoints = '', rule = '', wanted = '', ...others] = line.split('|').map((text) => text.trim());
  const wantedOf = (plane: string) =>
    percentsOf(others.find((text) => text.startsWith(plane))?.slice(plane.length + 1) ?? wanted);
  return {
    title,
    endpoints: endpoints.split(', ').map(endpointsOf),
    ...readRule(rule),
    wanted: percentsOf(wanted),
    wantedOfNames: wantedOf('names'),
    wantedOfXds: wantedOf('xds'),
  };
}

function endpointsOf(text: string): CaseEndpoints {
  const [label = '', count] = text.split(' ');
  const [, cluster = '', zone, state = 'ready'] = /^([a-z]+)(?:@([a-z]))?(?:-([a-z]+))?$/.exec(label) ?? [];
  return { label, cluster, zone, state: state as CaseEndpoints['state'], count: Number(count) };
}

function percentsOf(text: string): Percents {
  return new Map(text.split(', ').map((part) => [part.split(' ')[0]!, Number(part.split(' ')[1])]));
}

function readRule(rule: string): Pick<ChoiceCase, 'isNearestFirst' | 'routing'> {
  const words = rule.split(' ').filter((word) => word !== '');
  const groups: { clusters: string[]; weight?: number }[] = [];
  const excluded: string[] = [];
  const lowered: Record<string, number> = {};
  const counted: Record<string, number> = {};
  let minReady: Routing['minReady'];
  let shift: RoutingShift | undefined;
  let isNearestFirst = false;
  const next = () => words.shift() ?? '';
  while (words.length > 0) {
    const word = next();
    if (word === 'near') isNearestFirst = true;
    else if (word === '>') groups.push({ clusters: next().split('+') });
    else if (word === 'min') {
      const least = next();
      minReady = least.endsWith('%') ? { percent: Number.parseInt(least, 10) } : { count: Number(least) };
    } else if (word === 'lower') lowered[next()] = Number(next());
    else if (word === 'counted') counted[next()] = Number(next());
    else if (word === 'shift') shift = { from: next(), to: next(), percent: Number(next()) };
    else if (word.startsWith('!')) excluded.push(word.slice(1));
    else {
      const [clusters = '', weight] = word.split('=');
      groups.push({ clusters: clusters.split('+'), weight: Number(weight) });
    }
  }
  const routing = {
    ...{ groups, excluded, lowered },
    ...(minReady && { minReady }),
    ...(Object.keys(counted).length > 0 && { counted }),
    ...(shift && { shift }),
  };
  return { isNearestFirst, routing };
}
