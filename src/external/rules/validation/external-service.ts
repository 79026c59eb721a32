// Everything that is wrong with a MeshExternalService, each with its field, all at once; and warnings about
// surprising settings. Pure, and safe on objects of any shape: at admission, and as a condition where there is none.

import { isDns1035Label } from '../../../base/dns/labels.ts';
import { type FieldError, invalid } from '../../../kube/objects/field-error.ts';
import type { KubernetesObject } from '../../../kube/objects/object.ts';
import { ownName } from '../../kinds/mesh-external-service.ts';
import { checkDestination, destinationTypeOf } from './destination.ts';
import { type Fields, fieldsOf, listOf } from './loose.ts';
import { checkMatches, isPortHijack, rangedPorts } from './matches.ts';
import { checkTls } from './tls.ts';

export function externalServiceErrors(object: KubernetesObject): FieldError[] {
  const errors: FieldError[] = [];
  for (const why of isDns1035Label(ownName(object))) errors.push(invalid('metadata.name', object.metadata.name, why));
  const { spec, destination, matches } = partsOf(object);
  checkMatches(errors, 'spec.match', spec['match'], destinationTypeOf(destination));
  checkDestination(errors, 'spec.destination', destination ?? {}, matches);
  const tls = fieldsOf(destination?.['tls']);
  if (tls !== undefined && destinationTypeOf(destination) === 'Regular')
    checkTls(errors, 'spec.destination.tls', tls, { endpoints: destination?.['endpoints'], matches });
  return errors;
}

export function externalServiceWarnings(object: KubernetesObject): string[] {
  const { destination, matches } = partsOf(object);
  const tls = fieldsOf(destination?.['tls']);
  const verification = fieldsOf(tls?.['verification']);
  const warnings: string[] = [];
  const ranged = rangedPorts(matches);
  for (const [index, match] of matches.entries()) {
    if (match?.['type'] !== 'Domain' || (match['protocol'] ?? 'tcp') !== 'tcp') continue;
    const at = `spec.match[${index}]`;
    const text = isPortHijack(match, ranged)
      ? `${at}: takes all traffic of port ${String(match['port'])}, whatever its destination: tcp cannot tell domains apart; use tls or http, or add a CIDR or IP match`
      : `${at}: ignored, tcp cannot tell domains apart; the CIDR and IP matches of port ${String(match['port'])} count`;
    warnings.push(text);
  }
  if (tls?.['enabled'] === false && Object.keys(tls).length > 1)
    warnings.push('spec.destination.tls: enabled is false, its other fields are not used');
  if (verification?.['skip'] === true && listOf(verification['subjectAltNames']).length > 0)
    warnings.push('spec.destination.tls.verification: skip is true, subjectAltNames have no effect');
  return warnings;
}

function partsOf(object: KubernetesObject): {
  spec: Fields;
  destination: Fields | undefined;
  matches: readonly (Fields | undefined)[];
} {
  const spec = fieldsOf((object as { spec?: unknown }).spec) ?? {};
  return { spec, destination: fieldsOf(spec['destination']), matches: listOf(spec['match']).map(fieldsOf) };
}
