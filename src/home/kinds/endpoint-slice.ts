// The EndpointSlice kind.

import { type EndpointSlice, endpointSliceType } from '../../kube/objects/endpoint-slice.ts';
import { builtinKind } from './builtin.ts';
import { column, nameColumn, shortList } from './columns.ts';
import type { Kind } from './kind.ts';
import { applyEndpointSliceDefaults, validateEndpointSlice } from './rules/endpoint-slice-validation.ts';

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
