// Validation of the matches of a MeshExternalService. Pure.

import type { TextRule } from '../../../base/dns/labels.ts';
import { parseIp, parseRange } from '../../../base/net/ip.ts';
import { checkText } from '../../../kube/objects/checks.ts';
import { duplicate, type FieldError, invalid, notSupported, required } from '../../../kube/objects/field-error.ts';
import { type MatchType, matchTypes, protocols, proxyPorts } from '../../kinds/mesh-external-service.ts';
import { isDomain, isHostname, isWildcard } from './hostname.ts';
import { type Fields, fieldsOf, isAbsent, listOf, textOf } from './loose.ts';

const isAddress: TextRule = (text) => {
  if (isMappedV4(text)) return ['must be written as the IPv4 address that it stands for'];
  return parseIp(text) === undefined ? ['must be an IPv4 or IPv6 address'] : [];
};

const isRange: TextRule = (text) => {
  if (isMappedV4(text)) return ['must be written as the IPv4 range that it stands for'];
  return text.includes('/') && parseRange(text) !== undefined ? [] : ['must be a range such as 10.1.1.0/24'];
};

const valueRules: Readonly<Record<MatchType, TextRule>> = {
  InternalVIP: isHostname,
  Domain: isDomain,
  CIDR: isRange,
  IP: isAddress,
};

export function checkMatches(errors: FieldError[], field: string, value: unknown, destinationType: string): void {
  const matches = listOf(value).map(fieldsOf);
  if (matches.length === 0) errors.push(required(field, 'at least one match'));
  const seen = new Set<string>();
  for (const [index, match] of matches.entries()) {
    const at = `${field}[${index}]`;
    if (match === undefined) {
      errors.push(invalid(at, null, 'must be an object'));
      continue;
    }
    checkMatch(errors, at, match);
    checkWildcard(errors, at, match, destinationType);
    const identity = JSON.stringify([match['type'], valueText(match), match['port'], protocolOf(match)]);
    if (seen.has(identity)) errors.push(duplicate(at, identity));
    seen.add(identity);
  }
}

function checkMatch(errors: FieldError[], at: string, match: Fields): void {
  const type = match['type'];
  const isKnownType = matchTypes.some((known) => known === type);
  if (isAbsent(type)) errors.push(required(`${at}.type`));
  else if (!isKnownType) errors.push(notSupported(`${at}.type`, type, matchTypes));
  else checkValue(errors, `${at}.value`, type as MatchType, match['value']);
  const { port, protocol } = match;
  if (isAbsent(port)) errors.push(required(`${at}.port`));
  else if (!isPort(port)) errors.push(invalid(`${at}.port`, port, 'must be between 1 and 65535, inclusive'));
  else if (proxyPorts.includes(port))
    errors.push(invalid(`${at}.port`, port, `must not be a port of the proxy itself: ${proxyPorts.join(', ')}`));
  if (!isAbsent(protocol) && !protocols.some((known) => known === protocol))
    errors.push(notSupported(`${at}.protocol`, protocol, protocols));
}

function checkValue(errors: FieldError[], field: string, type: MatchType, value: unknown): void {
  if (isAbsent(value)) {
    if (type !== 'InternalVIP') errors.push(required(field, `${type} needs a value`));
    return;
  }
  const text = textOf(value);
  if (text === undefined) errors.push(invalid(field, value, 'must be text'));
  else checkText(errors, field, text, valueRules[type]);
}

function checkWildcard(errors: FieldError[], at: string, match: Fields, destinationType: string): void {
  const value = textOf(match['value']) ?? '';
  if (match['type'] !== 'Domain' || !isWildcard(value) || destinationType === 'Passthrough') return;
  errors.push(invalid(`${at}.value`, value, 'a wildcard domain is only possible with destination type Passthrough'));
}

/** Ports on which some match is about addresses. */
export function rangedPorts(matches: readonly (Fields | undefined)[]): ReadonlySet<unknown> {
  const ranges = matches.filter((match) => match?.['type'] === 'CIDR' || match?.['type'] === 'IP');
  return new Set(ranges.map((match) => match?.['port']));
}

/** Whether a Domain match by tcp has no range beside it on its port, so that the whole port would be meant. */
export function isPortHijack(match: Fields, ranged: ReadonlySet<unknown>): boolean {
  return match['type'] === 'Domain' && protocolOf(match) === 'tcp' && !ranged.has(match['port']);
}

function protocolOf(match: Fields): unknown {
  return isAbsent(match['protocol']) ? 'tcp' : match['protocol'];
}

function valueText(match: Fields): string {
  return textOf(match['value'])?.toLowerCase() ?? '';
}

export function isPort(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 65535;
}

function isMappedV4(text: string): boolean {
  const ip = parseIp(text.split('/')[0] ?? '');
  return ip?.family === 'IPv6' && ip.value >> 32n === 0xffffn;
}
