// Plans the external services of a cluster: the names that get a virtual IP, and the status of each object. Pure; the
// caller allocates addresses in between.

import { parseIp } from '../../base/ip.ts';
import type { WantedCondition } from '../../kube/objects/conditions.ts';
import type { HostnameGenerator } from '../kinds/hostname-generator.ts';
import { allowManyAnnotation, selectedMax } from '../kinds/hostname-generator.ts';
import {
  type ExternalAddress,
  type ExternalVip,
  type MeshExternalService,
  originOf,
  ownName,
} from '../kinds/mesh-external-service.ts';
import { type HostnamePlan, type NameOwner, planHostnames } from './hostnames.ts';
import { findOverlaps, type Pool } from './overlaps.ts';
import { ownerId, ownerOf, rulesOf } from './rule.ts';
import { secretsOf, type TargetContext, type Targeting, targetsOf } from './target.ts';
import { expiredCertificates, readTls } from './tls-plan.ts';
import { externalServiceWarnings } from './validation/external-service.ts';
import { hostnameGeneratorErrors } from './validation/hostname-generator.ts';

export interface ServicesInput extends TargetContext {
  readonly services: readonly MeshExternalService[];
  readonly generators: readonly HostnameGenerator[];
  readonly others: readonly NameOwner[];
  readonly zones: readonly string[];
}

export interface ServicesPlan {
  readonly input: ServicesInput;
  readonly targetings: ReadonlyMap<MeshExternalService, Targeting>;
  /** Valid and visible here. */
  readonly counting: readonly MeshExternalService[];
  readonly hostnames: HostnamePlan;
  /** Names that are to have a virtual IP, in order. */
  readonly wanted: readonly string[];
}

export function planServices(input: ServicesInput): ServicesPlan {
  const targetings = new Map(input.services.map((object) => [object, targetsOf(object, input)]));
  const counting = input.services.filter((object) => doesCount(targetings.get(object)!));
  const generators = input.generators.filter(
    (one) => originOf(one) === 'broker' && hostnameGeneratorErrors(one).length === 0,
  );
  const hostnames = planHostnames({ resources: counting, generators, others: input.others, zones: input.zones });
  const addresses = [...hostnames.addresses.values()].flat();
  const available = addresses.filter(({ status }) => status === 'Available').map(({ hostname }) => hostname);
  return { input, targetings, counting, hostnames, wanted: [...new Set(available)].sort() };
}

/** A missing secret or plugin takes the way from it, not the name. */
function doesCount(targeting: Targeting): boolean {
  return targeting.kind === 'rules' || (targeting.reason !== 'Invalid' && targeting.reason !== 'NotVisible');
}

export interface HeldAddresses {
  /** By hostname. */
  readonly ips: ReadonlyMap<string, readonly string[]>;
  /** Hostnames that got none, and why. */
  readonly exhausted: ReadonlyMap<string, string>;
}

export interface WantedStatus {
  readonly vips: readonly ExternalVip[];
  readonly addresses: readonly ExternalAddress[];
  readonly overlaps: readonly string[];
  readonly conditions: readonly WantedCondition[];
}

const overlapsMax = 100;

/** The status of each service, by the object it is for. */
export function planStatuses(
  plan: ServicesPlan,
  held: HeldAddresses,
  { pools, nowMs }: { readonly pools: readonly Pool[]; readonly nowMs: number },
): Map<MeshExternalService, WantedStatus> {
  const vips = new Map(plan.counting.map((object) => [object, vipsOf(object, plan, held)]));
  const withVips = plan.counting.map((object) => ({
    ...object,
    status: { ...object.status, vips: [...vips.get(object)!] },
  }));
  const overlaps = new Map<string, string[]>();
  for (const { resources, text } of findOverlaps(withVips.flatMap(rulesOf), pools))
    for (const id of resources) overlaps.set(id, [...(overlaps.get(id) ?? []).slice(0, overlapsMax), text]);
  return new Map(
    plan.input.services.map((object) => {
      const id = ownerId(ownerOf(object));
      const isCounting = vips.has(object);
      const texts = isCounting ? (overlaps.get(id) ?? []) : [];
      const addresses = isCounting ? (plan.hostnames.addresses.get(id) ?? []) : [];
      return [
        object,
        {
          vips: vips.get(object) ?? [],
          addresses,
          overlaps: texts.slice(0, overlapsMax),
          conditions: conditionsOf(object, { plan, held, addresses, overlaps: texts, nowMs }),
        },
      ];
    }),
  );
}

function vipsOf(object: MeshExternalService, { hostnames }: ServicesPlan, { ips }: HeldAddresses): ExternalVip[] {
  const addresses = hostnames.addresses.get(ownerId(ownerOf(object))) ?? [];
  return addresses
    .filter(({ status }) => status === 'Available')
    .flatMap(({ hostname }) => (ips.get(hostname) ?? []).map((ip) => ({ ip, type: 'Portolan', hostname })))
    .filter(({ ip }) => parseIp(ip) !== undefined);
}

interface Findings {
  readonly plan: ServicesPlan;
  readonly held: HeldAddresses;
  readonly addresses: readonly ExternalAddress[];
  readonly overlaps: readonly string[];
  readonly nowMs: number;
}

function conditionsOf(object: MeshExternalService, findings: Findings): WantedCondition[] {
  const targeting = findings.plan.targetings.get(object)!;
  const isAccepted = doesCount(targeting);
  const accepted: WantedCondition = isAccepted
    ? { type: 'Accepted', status: 'True', reason: 'Accepted', message: '' }
    : refused('Accepted', targeting as Extract<Targeting, { kind: 'none' }>);
  if (!isAccepted) return [accepted, { type: 'Ready', status: 'False', reason: 'NotAccepted', message: '' }];
  return [
    accepted,
    readyCondition(targeting, findings),
    hostnamesCondition(findings.addresses),
    flag('Overlapping', 'Overlap', findings.overlaps.slice(0, 10)),
    flag('CertificateExpired', 'Expired', expiredIn(object, findings)),
    flag('Warnings', 'Warnings', externalServiceWarnings(object)),
  ];
}

function refused(type: string, { reason, problems }: Extract<Targeting, { kind: 'none' }>): WantedCondition {
  return { type, status: 'False', reason, message: problems.join('; ') };
}

function readyCondition(targeting: Targeting, { addresses, held }: Findings): WantedCondition {
  if (targeting.kind === 'none') return refused('Ready', targeting);
  const empty = addresses.flatMap(({ hostname }) => {
    const why = held.exhausted.get(hostname);
    return why === undefined ? [] : [`${hostname}: ${why}`];
  });
  if (empty.length > 0)
    return { type: 'Ready', status: 'False', reason: 'AddressesExhausted', message: empty.join('; ') };
  return { type: 'Ready', status: 'True', reason: 'Ready', message: '' };
}

function hostnamesCondition(addresses: readonly ExternalAddress[]): WantedCondition {
  const lost = addresses.filter(({ status }) => status === 'NotAvailable');
  const message = lost.map(({ hostname, reason }) => `${hostname}: ${reason}`).join('; ');
  return lost.length === 0
    ? { type: 'HostnamesAvailable', status: 'True', reason: 'Available', message: '' }
    : { type: 'HostnamesAvailable', status: 'False', reason: 'NotAvailable', message };
}

function expiredIn(object: MeshExternalService, { plan, nowMs }: Findings): string[] {
  const reading = readTls(object.spec.destination?.tls, secretsOf(object, plan.input.secrets));
  return reading.kind === 'tls' ? expiredCertificates(reading.plan, nowMs) : [];
}

/** True needs a person's attention. */
function flag(type: string, reason: string, texts: readonly string[]): WantedCondition {
  const message = texts.join('; ');
  return texts.length === 0
    ? { type, status: 'False', reason: `No${reason}`, message: '' }
    : { type, status: 'True', reason, message };
}

/** The condition of a generator, and how many resources it selects. */
export function generatorStatus(
  generator: HostnameGenerator,
  { hostnames }: ServicesPlan,
): { readonly selected: number; readonly condition: WantedCondition } {
  const selected = hostnames.selected.get(ownName(generator)) ?? 0;
  const say = (reason: string, message: string) => ({
    selected,
    condition: {
      type: 'Accepted',
      status: reason === 'Accepted' ? ('True' as const) : ('False' as const),
      reason,
      message,
    },
  });
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
