// The parts that run, and the faults that each of them can have. Pure.

export const clusters = ['east', 'west', 'south'] as const;
export type ClusterId = (typeof clusters)[number];

export type Part =
  | 'broker'
  | 'authority'
  | 'dashboard'
  | 'proxy west'
  | 'peering west'
  | 'peering acme'
  /** The way of a cluster to the broker. */
  | `link ${ClusterId}`
  /** The process behind the service that only this cluster exports. */
  | `backend ${ClusterId}`
  | `${'home' | 'agent' | 'dns'} ${ClusterId}`;

/** Cut off: its requests to its home are lost; those of the authority and of a link to the broker. */
type FaultKind = 'killed' | 'frozen' | 'cut off' | 'disk full' | 'clock jumped';

export interface Fault {
  readonly part: Part;
  readonly kind: FaultKind;
}

export const nameOf = ({ part, kind }: Fault) => `${part} ${kind}`;

/** Undefined for parts of the whole set. */
export function clusterOf(part: Part): ClusterId | undefined {
  return clusters.find((id) => part.endsWith(` ${id}`));
}

export const roleOf = (part: Part) => part.split(' ')[0]!;

const signalled: readonly Part[] = [
  'broker',
  'authority',
  'dashboard',
  'proxy west',
  'peering west',
  'peering acme',
  ...clusters.flatMap((id): Part[] => [`home ${id}`, `agent ${id}`, `dns ${id}`]),
];

/** Those with a relay in front of them. */
const cuttable: readonly Part[] = [
  'authority',
  'proxy west',
  'peering west',
  'peering acme',
  ...clusters.flatMap((id): Part[] => [`link ${id}`, `agent ${id}`, `dns ${id}`]),
];

export const diskParts: readonly Part[] = ['broker', ...clusters.map((id): Part => `home ${id}`)];

/** All clocks of this cluster can be moved. */
export const clockParts: readonly Part[] = ['home south', 'agent south', 'dns south'];

const of = (kind: FaultKind, parts: readonly Part[]) => parts.map((part): Fault => ({ part, kind }));

export const allFaults: readonly Fault[] = [
  ...of('killed', [...signalled, ...clusters.map((id): Part => `backend ${id}`)]),
  ...of('frozen', signalled),
  ...of('cut off', cuttable),
  ...of('disk full', diskParts),
  ...of('clock jumped', clockParts),
];
