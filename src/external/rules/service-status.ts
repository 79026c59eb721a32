// The status of one external service from what was found about it, and that of a generator. Pure.

import { conditionOf, type WantedCondition } from '../../kube/objects/conditions.ts';
import { type DataPlane, notCarriedBy } from '../../kube/objects/reports/data-plane.ts';
import { allowManyAnnotation, type HostnameGenerator, selectedMax } from '../kinds/hostname-generator.ts';
import {
  type ExternalAddress,
  type ExternalVip,
  type MeshExternalService,
  originOf,
} from '../kinds/mesh-external-service.ts';
import type { Targeting } from './target.ts';
import { externalServiceWarnings } from './validation/external-service.ts';
import { hostnameGeneratorErrors } from './validation/hostname-generator.ts';

export interface WantedStatus {
  readonly vips: readonly ExternalVip[];
  readonly addresses: readonly ExternalAddress[];
  readonly overlaps: readonly string[];
  readonly conditions: readonly WantedCondition[];
}

export interface Findings {
  readonly targeting: Targeting;
  readonly addresses: readonly ExternalAddress[];
  readonly vips: readonly ExternalVip[];
  readonly overlaps: readonly string[];
  /** Hostnames that got no address, and why. */
  readonly exhausted: ReadonlyMap<string, string>;
  /** Certificates that are over or not valid yet. */
  readonly expired: readonly string[];
  /** The Envoys that carry its connections. */
  readonly plane: DataPlane;
}

/** Whether it has names and rules. A missing secret or plugin takes the way from it, not the name. */
export function doesCount(targeting: Targeting): boolean {
  return targeting.kind === 'rules' || (targeting.reason !== 'Invalid' && targeting.reason !== 'NotVisible');
}

export function statusOf(object: MeshExternalService, findings: Findings): WantedStatus {
  const { vips, addresses, overlaps } = findings;
  return { vips, addresses, overlaps, conditions: conditionsOf(object, findings) };
}

function conditionsOf(object: MeshExternalService, findings: Findings): WantedCondition[] {
  const { targeting } = findings;
  if (!doesCount(targeting))
    return [
      refused('Accepted', targeting as Extract<Targeting, { kind: 'none' }>),
      { type: 'Ready', status: 'False', reason: 'NotAccepted', message: '' },
    ];
  return [
    { type: 'Accepted', status: 'True', reason: 'Accepted', message: '' },
    readyCondition(object, findings),
    hostnamesCondition(findings.addresses),
    flag('Overlapping', 'Overlap', findings.overlaps.slice(0, 10)),
    flag('CertificateExpired', 'Expired', findings.expired),
    flag('Warnings', 'Warnings', externalServiceWarnings(object)),
  ];
}

function refused(type: string, { reason, problems }: Extract<Targeting, { kind: 'none' }>): WantedCondition {
  return { type, status: 'False', reason, message: problems.join('; ') };
}

const noName =
  'no address leads to it: its InternalVIP has no value, and no HostnameGenerator of the broker names it; write a value, or make a generator that selects it';

/** Ready only if an Envoy here has a configuration: its name and its rules lead nowhere without one. */
function readyCondition(object: MeshExternalService, { targeting, exhausted, vips, plane }: Findings): WantedCondition {
  if (targeting.kind === 'none') return refused('Ready', targeting);
  const empty = Array.from(exhausted, ([hostname, why]) => `${hostname}: ${why}`);
  if (empty.length > 0)
    return { type: 'Ready', status: 'False', reason: 'AddressesExhausted', message: empty.join('; ') };
  const isVirtual = object.spec.match.every(({ type }) => type === 'InternalVIP');
  if (isVirtual && vips.length === 0) return { type: 'Ready', status: 'False', reason: 'NoAddress', message: noName };
  const refusal = conditionOf(object.status?.conditions, 'Programmed');
  if (refusal?.status === 'False')
    return { type: 'Ready', status: 'False', reason: 'NotProgrammed', message: refusal.message };
  // Until the Leases of this cluster have been listed, the last condition stays.
  const last = plane.kind === 'unknown' ? conditionOf(object.status?.conditions, 'Ready') : undefined;
  if (last !== undefined) return last;
  const missing = notCarriedBy(plane);
  if (missing !== undefined) return { type: 'Ready', ...missing };
  return { type: 'Ready', status: 'True', reason: 'Ready', message: 'an Envoy of this cluster has its configuration' };
}

function hostnamesCondition(addresses: readonly ExternalAddress[]): WantedCondition {
  const lost = addresses.filter(({ status }) => status === 'NotAvailable');
  const message = lost.map(({ hostname, reason }) => `${hostname}: ${reason}`).join('; ');
  return lost.length === 0
    ? { type: 'HostnamesAvailable', status: 'True', reason: 'Available', message: '' }
    : { type: 'HostnamesAvailable', status: 'False', reason: 'NotAvailable', message };
}

/** True is what somebody should look at. */
function flag(type: string, reason: string, texts: readonly string[]): WantedCondition {
  const message = texts.join('; ');
  return texts.length === 0
    ? { type, status: 'False', reason: `No${reason}`, message: '' }
    : { type, status: 'True', reason, message };
}

/** The generators that count. */
export function isCounting(generator: HostnameGenerator): boolean {
  return originOf(generator) === 'broker' && hostnameGeneratorErrors(generator).length === 0;
}

export function generatorCondition(generator: HostnameGenerator, selected: number): WantedCondition {
  const say = (reason: string, message: string): WantedCondition => {
    return { type: 'Accepted', status: reason === 'Accepted' ? 'True' : 'False', reason, message };
  };
  if (originOf(generator) !== 'broker')
    return say('NotAtBroker', 'a HostnameGenerator counts at the broker, in the namespace of the clusterset');
  const errors = hostnameGeneratorErrors(generator);
  if (errors.length > 0) return say('Invalid', errors.map(({ field, message }) => `${field}: ${message}`).join('; '));
  if (selected > selectedMax && generator.metadata.annotations?.[allowManyAnnotation] !== 'true')
    return say(
      'TooMany',
      `selects ${selected} resources, more than ${selectedMax}; narrow it, or set the annotation ${allowManyAnnotation} to "true"`,
    );
  return say('Accepted', '');
}
