// Validation of the destination of a MeshExternalService, except its TLS section. Pure.

import { parseIp } from '../../../base/net/ip.ts';
import { checkText } from '../../../kube/objects/checks.ts';
import {
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
} from '../../../kube/objects/field-error.ts';
import { type DestinationType, destinationTypes } from '../../kinds/mesh-external-service.ts';
import { isHostname } from './hostname.ts';
import { type Fields, fieldsOf, isAbsent, listOf, textOf } from './loose.ts';
import { isPort } from './matches.ts';

export const unixPrefix = 'unix://';
/** Longest path in a socket address of Linux. */
const unixPathBytesMax = 107;

const excluded: Readonly<Record<DestinationType, readonly string[]>> = {
  Regular: ['extension'],
  Passthrough: ['extension', 'endpoints', 'tls'],
  Extension: ['endpoints', 'tls'],
};

export function destinationTypeOf(destination: Fields | undefined): string {
  return isAbsent(destination?.['type']) ? 'Passthrough' : String(destination?.['type']);
}

export function checkDestination(errors: FieldError[], field: string, destination: Fields, matches: unknown): void {
  const type = destinationTypeOf(destination);
  const known = destinationTypes.find((one) => one === type);
  if (known === undefined) errors.push(notSupported(`${field}.type`, destination['type'], destinationTypes));
  for (const name of known === undefined ? [] : excluded[known]) {
    if (isAbsent(destination[name])) continue;
    errors.push(forbidden(`${field}.${name}`, `may not be set with destination type ${type}`));
  }
  if (known === 'Passthrough') checkReachable(errors, field, matches);
  if (known === 'Extension') checkExtension(errors, `${field}.extension`, destination['extension']);
  if (known === 'Regular' && listOf(destination['endpoints']).length === 0)
    errors.push(required(`${field}.endpoints`, 'destination type Regular needs at least one endpoint'));
  checkEndpoints(errors, `${field}.endpoints`, destination['endpoints']);
}

function checkReachable(errors: FieldError[], field: string, matches: unknown): void {
  const index = listOf(matches).findIndex((match) => fieldsOf(match)?.['type'] === 'InternalVIP');
  if (index < 0) return;
  const why = `Passthrough leads an InternalVIP (spec.match[${index}]) nowhere; give endpoints and type Regular`;
  errors.push(invalid(`${field}.type`, 'Passthrough', why));
}

function checkExtension(errors: FieldError[], field: string, extension: unknown): void {
  if (isAbsent(extension)) errors.push(required(field, 'destination type Extension needs it'));
  else if (isAbsent(fieldsOf(extension)?.['type'])) errors.push(required(`${field}.type`));
}

function checkEndpoints(errors: FieldError[], field: string, value: unknown): void {
  const seen = new Set<string>();
  for (const [index, endpoint] of listOf(value).map(fieldsOf).entries()) {
    const at = `${field}[${index}]`;
    if (endpoint === undefined) {
      errors.push(invalid(at, null, 'must be an object'));
      continue;
    }
    checkAddress(errors, `${at}.address`, endpoint['address']);
    checkPort(errors, `${at}.port`, endpoint);
    const identity = `${String(endpoint['address']).toLowerCase()} ${String(endpoint['port'] ?? '')}`;
    if (seen.has(identity)) errors.push(duplicate(at, identity.trim()));
    seen.add(identity);
  }
}

function checkPort(errors: FieldError[], field: string, { address, port }: Fields): void {
  if (isAbsent(port)) return;
  if (!isPort(port)) errors.push(invalid(field, port, 'must be between 1 and 65535, inclusive'));
  else if (textOf(address)?.startsWith(unixPrefix)) errors.push(forbidden(field, 'a unix socket has no port'));
}

function checkAddress(errors: FieldError[], field: string, value: unknown): void {
  const address = textOf(value);
  if (isAbsent(value) || address === '') errors.push(required(field));
  else if (address === undefined) errors.push(invalid(field, value, 'must be text'));
  else if (address.startsWith('unix:')) checkSocket(errors, field, address);
  else if (parseIp(address) === undefined) checkText(errors, field, address, isHostname);
}

function checkSocket(errors: FieldError[], field: string, address: string): void {
  const path = address.slice(unixPrefix.length);
  if (!address.startsWith(unixPrefix) || !path.startsWith('/') || path === '/' || path.includes('\0'))
    errors.push(invalid(field, address, 'must be unix:// and an absolute path, such as unix:///run/app.sock'));
  else if (Buffer.byteLength(path) > unixPathBytesMax)
    errors.push(invalid(field, address, `the path of a unix socket may have at most ${unixPathBytesMax} bytes`));
}
