// Where connections to one address and port of a service go: what the choice makes, and both modes apply.

import type { PortFacts } from '../catalog/facts/ports.ts';
import type { Family, Target } from '../catalog/facts/targets.ts';
import type { LeftEndpoint } from '../clusterset/rules/choice/answering.ts';
import type { Chosen } from '../clusterset/rules/choice/reachable.ts';
import type { Lot } from '../clusterset/rules/choice/shares.ts';

type Protocol = PortFacts['protocol'];
/** An endpoint, or for one in another network the node's own Envoy, which carries connections to the cluster `via`. */
export type Backend = Chosen<Target> & {
  /** The gateway is asked for one endpoint of a headless service. */
  readonly isOneEndpoint?: boolean;
};

export interface PortChoice {
  readonly ip: string;
  readonly family: Family;
  readonly protocol: Protocol;
  readonly port: number;
  /** Each (address, port) once, and the Envoy once for each endpoint behind it; empty if connections are to be refused. */
  readonly backends: readonly Backend[];
  /** The same with their shares, if these are not all alike. */
  readonly lots?: readonly Lot<Backend>[];
  /** Ready endpoints that get no connections now: nearer or preferred ones are used. Absent if there are none. */
  readonly later?: readonly (readonly Backend[])[];
  /** Ready endpoints that do not answer from this node. Absent if there are none. */
  readonly left?: readonly LeftEndpoint<Target>[];
  /** 0 without session affinity. */
  readonly affinitySeconds: number;
}
