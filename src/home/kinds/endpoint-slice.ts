// The EndpointSlice kind, its defaults and its rules. Unlike Kubernetes it allows loopback addresses: on a home without
// Kubernetes a process on this machine is an endpoint like any other.

import { isDnsLabel, isDnsSubdomain, type TextRule } from '../../base/dns/labels.ts';
import { isInRange, parseIp, parseRange } from '../../base/net/ip.ts';
import { checkOneOf, checkPortNumber, checkText, checkUnchanged, checkUnique } from '../../kube/objects/checks.ts';
import {
  type Endpoint,
  type EndpointPort,
  type EndpointSlice,
  endpointSliceType,
} from '../../kube/objects/endpoint-slice.ts';
import { type FieldError, required, tooMany } from '../../kube/objects/field-error.ts';
import { isQualifiedName } from '../../kube/objects/names.ts';
import { column, nameColumn, shortList } from '../model/columns.ts';
import type { Kind } from '../model/kind.ts';
import { builtinKind } from './builtin.ts';

export const endpointSliceKind: Kind = builtinKind<EndpointSlice>({
  ...endpointSliceType,
  hasGeneration: true,
  columns: [
    nameColumn,
    column<EndpointSlice>('AddressType', (slice) => slice.addressType),
    column<EndpointSlice>('Ports', formatPorts),
    column<EndpointSlice>('Endpoints', formatEndpoints),
  ],
  applyDefaults: applyEndpointSliceDefaults,
  validate: validateEndpointSlice,
});

function formatPorts({ ports = [] }: EndpointSlice): string {
  return ports.length === 0 ? '<unset>' : shortList(ports.map(({ port }) => (port === undefined ? '*' : String(port))));
}

function formatEndpoints({ endpoints = [] }: EndpointSlice): string {
  const addresses = endpoints.flatMap((endpoint) => endpoint.addresses ?? []);
  return addresses.length === 0 ? '<unset>' : shortList(addresses);
}

const endpointsMax = 1000;
const portsMax = 20_000;
const addressesMax = 100;
const zoneHintsMax = 8;

export function applyEndpointSliceDefaults(slice: EndpointSlice): void {
  slice.endpoints ??= [];
  for (const port of slice.ports ?? []) {
    port.name ??= '';
    port.protocol ??= 'TCP';
  }
}

export function validateEndpointSlice(slice: EndpointSlice, previous: EndpointSlice | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const endpoints = slice.endpoints ?? [];
  const ports = slice.ports ?? [];
  checkOneOf(errors, 'addressType', slice.addressType, ['FQDN', 'IPv4', 'IPv6']);
  if (previous !== undefined) checkUnchanged(errors, 'addressType', slice.addressType, previous.addressType);
  if (endpoints.length > endpointsMax) errors.push(tooMany('endpoints', endpoints.length, endpointsMax));
  else for (const [index, each] of endpoints.entries()) checkEndpoint(errors, `endpoints[${index}]`, each, slice);
  if (ports.length > portsMax) errors.push(tooMany('ports', ports.length, portsMax));
  else checkPorts(errors, ports);
  return errors;
}

function checkEndpoint(errors: FieldError[], path: string, endpoint: Endpoint, slice: EndpointSlice): void {
  const addresses = endpoint.addresses ?? [];
  const field = `${path}.addresses`;
  if (addresses.length === 0) errors.push(required(field, 'must contain at least 1 address'));
  if (addresses.length > addressesMax) errors.push(tooMany(field, addresses.length, addressesMax));
  const rule = addressRules[slice.addressType];
  for (const [index, address] of addresses.slice(0, addressesMax).entries()) {
    if (rule !== undefined) checkText(errors, `${field}[${index}]`, address, rule);
  }
  if (endpoint.hostname !== undefined) checkText(errors, `${path}.hostname`, endpoint.hostname, isDnsLabel);
  if (endpoint.nodeName !== undefined) checkText(errors, `${path}.nodeName`, endpoint.nodeName, isDnsSubdomain);
  checkHints(errors, `${path}.hints.forZones`, endpoint.hints?.forZones ?? []);
}

function checkHints(errors: FieldError[], field: string, zones: readonly { name: string }[]): void {
  if (zones.length > zoneHintsMax) errors.push(tooMany(field, zones.length, zoneHintsMax));
  for (const [index, zone] of zones.entries()) {
    if (!zone.name) errors.push(required(`${field}[${index}].name`));
  }
  checkUnique(errors, zones, { of: (zone) => zone.name, field: (index) => `${field}[${index}].name` });
}

const addressRules: Readonly<Record<EndpointSlice['addressType'], TextRule>> = {
  IPv4: (text) => addressErrors(text, 'IPv4'),
  IPv6: (text) => addressErrors(text, 'IPv6'),
  FQDN: (text) => isDnsSubdomain(text),
};

function addressErrors(text: string, family: 'IPv4' | 'IPv6'): string[] {
  const ip = parseIp(text);
  if (ip?.family !== family) return [`must be a valid ${family} address`];
  const unreachable = unreachableRanges.find(({ range }) => isInRange(ip, range));
  return unreachable === undefined ? [] : [unreachable.text];
}

const unreachableRanges = [
  { range: rangeOf('0.0.0.0/32'), text: 'may not be unspecified (0.0.0.0)' },
  { range: rangeOf('::/128'), text: 'may not be unspecified (::)' },
  { range: rangeOf('169.254.0.0/16'), text: 'may not be in the link-local range (169.254.0.0/16, fe80::/10)' },
  { range: rangeOf('fe80::/10'), text: 'may not be in the link-local range (169.254.0.0/16, fe80::/10)' },
  { range: rangeOf('224.0.0.0/4'), text: 'may not be in the multicast range (224.0.0.0/4, ff00::/8)' },
  { range: rangeOf('ff00::/8'), text: 'may not be in the multicast range (224.0.0.0/4, ff00::/8)' },
];

function rangeOf(text: string) {
  const range = parseRange(text);
  if (range === undefined) throw new Error(`${text} is not a range`);
  return range;
}

function checkPorts(errors: FieldError[], ports: readonly EndpointPort[]): void {
  for (const [index, port] of ports.entries()) {
    const path = `ports[${index}]`;
    if (port.name) checkText(errors, `${path}.name`, port.name, isDnsLabel);
    checkOneOf(errors, `${path}.protocol`, port.protocol, ['SCTP', 'TCP', 'UDP']);
    if (port.port !== undefined) checkPortNumber(errors, `${path}.port`, port.port);
    if (port.appProtocol !== undefined) checkText(errors, `${path}.appProtocol`, port.appProtocol, isQualifiedName);
  }
  checkUnique(errors, ports, { of: (port) => port.name ?? '', field: (index) => `ports[${index}].name` });
}
