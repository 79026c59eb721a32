// Why a connection goes where it goes: the rule, the destination, the rules it hides, and what to know beside. Pure.

import { isInRange } from '../../base/net/ip.ts';
import type { MeshExternalService } from '../kinds/mesh-external-service.ts';
import { type Connection, prefixLength, type Request, rank } from './choose.ts';
import { formatRange } from './overlaps.ts';
import { capturesPort, defaultOutboundPorts, type Redirect, redirectsOf } from './redirects.ts';
import { ownerId, type Rule, type RuleMatch } from './rule.ts';
import { tablesOf } from './tables.ts';
import { type Target, type TargetContext, type TargetedRule, targetsOf } from './target.ts';
import type { TlsPlan } from './tls-plan.ts';

export interface ConnectionExplanation {
  /** The rule that decides; absent when the connection is treated as without Portolan. */
  readonly rule?: ExplainedRule;
  /** For people. */
  readonly destination: string;
  /** Which listener of the node's Envoy gets it; `none` if the kernel does not redirect it. */
  readonly listener: 'inspected' | 'plain' | 'none';
  /** Rules that apply too, and why they do not decide. */
  readonly hides: readonly (ExplainedRule & { readonly why: string })[];
  readonly notes: readonly string[];
}

interface ExplainedRule {
  readonly resource: string;
  /** `spec.match[2]` */
  readonly field: string;
  readonly match: string;
  readonly cluster: string;
}

export interface ExplainInput extends TargetContext {
  readonly services: readonly MeshExternalService[];
}

export function explainConnection(
  { services, ...context }: ExplainInput,
  connection: Connection,
  request?: Request,
): ConnectionExplanation {
  const targetings = services.map((object) => ({ object, targeting: targetsOf(object, context) }));
  const rules = targetings.flatMap(({ targeting }) => targeting.rules);
  const [winner, ...others] = rank(rules, connection, request);
  const redirect = redirectFor(rules, connection);
  const unusable = targetings.flatMap(({ object, targeting }) =>
    targeting.kind === 'none' && object.spec?.match?.some?.(({ port }) => port === connection.port)
      ? [`${object.metadata.name} ${obstacleText(targeting.rules)}: ${targeting.problems.join('; ')}`]
      : [],
  );
  return {
    ...(winner === undefined ? {} : { rule: explained(winner) }),
    destination: winner === undefined ? `${asWithout(redirect)}` : destinationOf(winner.target),
    listener: listenerOf(redirect),
    hides: others.map((rule) => ({ ...explained(rule), why: whyNot(rule, winner!) })),
    notes: [...notesOf(rules, connection, request, winner), ...unusable],
  };
}

function obstacleText(rules: readonly TargetedRule[]): string {
  return rules.length === 0 ? 'does not count' : 'is not ready, what it matches is closed';
}

function asWithout(redirect: Redirect | undefined): string {
  return redirect === undefined
    ? 'where the client wanted to go; no rule captures it'
    : "where the client wanted to go, through the node's Envoy: the port is captured, but no rule matches";
}

function redirectFor(rules: readonly TargetedRule[], { address, port }: Connection): Redirect | undefined {
  const fitting = redirectsOf(tablesOf(rules), defaultOutboundPorts).filter(
    (redirect) => redirect.port === port && isInRange(address, redirect.range),
  );
  return fitting.sort((one, other) => (one.range.size < other.range.size ? -1 : 1))[0];
}

function listenerOf(redirect: Redirect | undefined): ConnectionExplanation['listener'] {
  if (redirect === undefined) return 'none';
  return redirect.toPort === defaultOutboundPorts.plain ? 'plain' : 'inspected';
}

function explained(rule: TargetedRule): ExplainedRule {
  const { resource, index, match, port, protocol, target } = rule;
  const text = `${matchText(match)} port ${port} ${protocol}`;
  return { resource: ownerId(resource), field: `spec.match[${index}]`, match: text, cluster: target.name };
}

function matchText(match: RuleMatch): string {
  if (match.kind === 'name') return `name ${match.name}`;
  if (match.kind === 'wildcard') return `names *${match.suffix}`;
  if (match.kind === 'vip') return 'virtual IP';
  return match.range.size === 1n ? `address ${formatRange(match.range)}` : `range ${formatRange(match.range)}`;
}

function destinationOf({ destination, port }: Target): string {
  if (destination.kind === 'passthrough') return 'the original destination (Passthrough)';
  if (destination.kind === 'plugin') return `the plugin ${destination.type}`;
  if (destination.kind === 'closed') return 'nowhere: the connection is closed, because the service is not ready';
  const endpoints = destination.endpoints.map(({ address, port: own }) =>
    address.startsWith('unix:') ? address : `${address}:${own ?? port}`,
  );
  return `${endpoints.join(', ')}${destination.tls === undefined ? '' : ` over TLS, verified ${verification(destination.tls)}`}`;
}

function verification({ ca, names }: TlsPlan): string {
  if (ca === undefined) return 'not at all (skip, no CA)';
  const by = ca.kind === 'system' ? "by the system's CAs" : 'by CA';
  if (names === 'any') return `${by} alone (skip)`;
  return names === 'own' ? `${by} and the endpoint's own name` : `${by} and ${names.join(', ')}`;
}

function whyNot(rule: Rule, winner: Rule): string {
  const [own, better] = [rankText(rule.match), rankText(winner.match)];
  if (own !== better) return `${better} counts more than ${own}`;
  if (rule.resource.createdMs !== winner.resource.createdMs) return `${ownerId(winner.resource)} is older`;
  return ownerId(rule.resource) === ownerId(winner.resource)
    ? 'an earlier match of the same resource decides'
    : `as old as ${ownerId(winner.resource)}, which comes first by name`;
}

function rankText(match: RuleMatch): string {
  if (match.kind === 'vip') return 'a virtual IP';
  if (match.kind === 'name') return 'an exact name';
  if (match.kind === 'wildcard') return `a wildcard of ${match.suffix.split('.').length - 1} labels`;
  return match.range.size === 1n ? 'a single address' : `a prefix of ${prefixLength(match.range)} bits`;
}

function notesOf(
  rules: readonly TargetedRule[],
  { port, transport }: Connection,
  request: Request | undefined,
  winner: TargetedRule | undefined,
): string[] {
  const tables = tablesOf(rules).find((one) => one.port === port);
  const notes: string[] = [];
  if (tables !== undefined && capturesPort(tables))
    notes.push(
      `a Domain match captures port ${port} for all destinations; what DNS answers for that name stays as it is`,
    );
  const isHttp = transport.kind === 'plain' && transport.application !== undefined;
  const names = isHttp && tables !== undefined ? tables.classes[transport.application!].names : [];
  if (isHttp && request === undefined && names.length > 0 && winner?.match.kind !== 'vip')
    notes.push(
      `requests may go elsewhere by Host: ${names
        .map(({ name }) => name)
        .slice(0, 10)
        .join(', ')}; add --host`,
    );
  return notes;
}
