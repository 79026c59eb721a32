// The matching of rules: which rule a connection or a request matches. The generator for Envoy is held to this
// function, and `explain connection` prints it. Pure.
//
// A connection to a virtual IP is decided by that address alone. Otherwise, among the rules of the port whose protocol
// the connection speaks: an exact name, then the longest wildcard, then the longest prefix; between equals the older
// resource, then its name. Host is known per request, so a name of an HTTP rule counts for requests only.

import { type Ip, isInRange } from '../../base/net/ip.ts';
import type { Protocol } from '../kinds/mesh-external-service.ts';
import { byPrecedence, type Rule } from './rule.ts';

export interface Connection {
  readonly address: Ip;
  readonly port: number;
  readonly transport: Transport;
}

export type Transport =
  | { readonly kind: 'tls'; readonly sni?: string }
  | { readonly kind: 'plain'; readonly application?: 'http1' | 'http2' };

export interface Request {
  /** As in the header, with or without a port. */
  readonly host: string;
}

/** The rule that decides; undefined is treated as without Portolan. */
export function choose<R extends Rule>(rules: readonly R[], connection: Connection, request?: Request): R | undefined {
  return rank(rules, connection, request)[0];
}

/** All rules that apply, the one that decides first. */
export function rank<R extends Rule>(rules: readonly R[], connection: Connection, request?: Request): R[] {
  const ofPort = rules.filter((rule) => rule.port === connection.port);
  const ofVip = ofPort.filter(({ match }) => match.kind === 'vip' && match.addresses.some(isSame(connection.address)));
  const candidates = ofVip.length > 0 ? ofVip : ofPort.filter(({ match }) => match.kind !== 'vip');
  return candidates
    .filter((rule) => speaks(connection.transport, rule.protocol))
    .map((rule) => ({ rule, strength: strengthOf(rule, connection, request) }))
    .filter(({ strength }) => strength >= 0)
    .sort((one, other) => other.strength - one.strength || byPrecedence(one.rule, other.rule))
    .map(({ rule }) => rule);
}

/** tcp is in everything; the others are what they say. */
export function speaks(transport: Transport, protocol: Protocol): boolean {
  if (protocol === 'tcp') return true;
  if (transport.kind === 'tls') return protocol === 'tls';
  if (protocol === 'http') return transport.application === 'http1';
  return protocol !== 'tls' && transport.application === 'http2';
}

const everyTransport: readonly Transport[] = [
  { kind: 'tls' },
  { kind: 'plain', application: 'http1' },
  { kind: 'plain', application: 'http2' },
  { kind: 'plain' },
];

/** Whether one connection can be about rules of both. */
export function canMeet(one: Protocol, other: Protocol): boolean {
  return one === other || everyTransport.some((transport) => speaks(transport, one) && speaks(transport, other));
}

const exactName = 2000;
const wildcardName = 1000;

/** Below 0 if the rule does not match at all. */
function strengthOf({ match }: Rule, connection: Connection, request: Request | undefined): number {
  if (match.kind === 'vip') return exactName;
  if (match.kind === 'range') return isInRange(connection.address, match.range) ? prefixLength(match.range) : -1;
  const name = nameIn(connection, request);
  if (match.kind === 'name') return match.name === name ? exactName : -1;
  const isBelow = name !== undefined && name.length > match.suffix.length && name.endsWith(match.suffix);
  return isBelow ? wildcardName + match.suffix.length : -1;
}

function nameIn({ transport }: Connection, request: Request | undefined): string | undefined {
  if (transport.kind === 'tls') return transport.sni?.toLowerCase();
  return transport.application === undefined || request === undefined ? undefined : hostOf(request.host);
}

/** The Host without its port, in lower case. */
function hostOf(host: string): string {
  return host.toLowerCase().replace(/:\d*$/, '');
}

/** The same for both families: only ranges of one family are ever compared. */
export function prefixLength(range: { readonly family: string; readonly size: bigint }): number {
  return (range.family === 'IPv4' ? 32 : 128) - (range.size.toString(2).length - 1);
}

function isSame(one: Ip): (other: Ip) => boolean {
  return (other) => one.family === other.family && one.value === other.value;
}
