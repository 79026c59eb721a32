// The Ingress and IngressClass kinds: stored, and served by nothing here. Charts bring them.

import { isDnsSubdomain } from '../../base/dns/labels.ts';
import { parseIp } from '../../base/net/ip.ts';
import {
  checkOneOf,
  checkPortNumber,
  checkRequiredText,
  checkText,
  checkUnchanged,
} from '../../kube/objects/checks.ts';
import { type FieldError, invalid, required } from '../../kube/objects/field-error.ts';
import { isPortName } from '../../kube/objects/names.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import { column, nameColumn, orNone } from '../model/columns.ts';
import type { Kind } from '../model/kind.ts';
import { builtinKind, storedOnly } from './builtin.ts';

interface Backend {
  service?: { name?: string; port?: { name?: string; number?: number } };
  resource?: { kind?: string; name?: string };
}

interface Path {
  path?: string;
  pathType?: string;
  backend?: Backend;
}

interface Ingress extends KubernetesObject {
  spec?: {
    ingressClassName?: string;
    defaultBackend?: Backend;
    tls?: { hosts?: string[]; secretName?: string }[];
    rules?: { host?: string; http?: { paths?: Path[] } }[];
  };
  status?: { loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] } };
}

interface Parameters {
  apiGroup?: string;
  kind?: string;
  name?: string;
  scope?: string;
  namespace?: string;
}

interface IngressClass extends KubernetesObject {
  spec?: { controller?: string; parameters?: Parameters };
}

export const ingressKind: Kind = builtinKind<Ingress>({
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'ingresses',
  kind: 'Ingress',
  isNamespaced: true,
  hasGeneration: true,
  shortNames: ['ing'],
  columns: [
    nameColumn,
    column<Ingress>('Class', ({ spec }) => orNone(spec?.ingressClassName)),
    column<Ingress>('Hosts', ({ spec }) => (spec?.rules ?? []).map(({ host }) => host || '*').join(',') || '*'),
    column<Ingress>('Address', addressesOf),
    column<Ingress>('Ports', ({ spec }) => ((spec?.tls ?? []).length > 0 ? '80, 443' : '80')),
  ],
  applyDefaults: (ingress) => {
    ingress.status ??= {};
    ingress.status.loadBalancer ??= {};
  },
  validate: validateIngress,
  behaviour: { isMetadataInStatus: true, warnings: () => [storedOnly('Ingress', 'serves')] },
});

export const ingressClassKind: Kind = builtinKind<IngressClass>({
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'ingressclasses',
  kind: 'IngressClass',
  isNamespaced: false,
  hasGeneration: true,
  columns: [
    nameColumn,
    column<IngressClass>('Controller', ({ spec }) => spec?.controller ?? ''),
    column<IngressClass>('Parameters', ({ spec }) => orNone(parametersText(spec?.parameters))),
  ],
  applyDefaults: ({ spec }) => {
    if (spec?.parameters !== undefined) spec.parameters.scope ??= 'Cluster';
  },
  validate: validateClass,
});

function addressesOf({ status }: Ingress): string {
  return (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || '').join(',');
}

function parametersText(parameters: Parameters | undefined): string {
  if (parameters === undefined) return '';
  const { apiGroup, kind = '', name = '' } = parameters;
  return `${apiGroup ? `${kind}.${apiGroup}` : kind}/${name}`;
}

function validateIngress({ spec = {} }: Ingress): FieldError[] {
  const errors: FieldError[] = [];
  const { rules = [], defaultBackend, ingressClassName } = spec;
  if (rules.length === 0 && defaultBackend === undefined) {
    errors.push(invalid('spec', spec, 'either `defaultBackend` or `rules` must be specified'));
  }
  if (ingressClassName !== undefined) checkText(errors, 'spec.ingressClassName', ingressClassName, isDnsSubdomain);
  if (defaultBackend !== undefined) checkBackend(errors, 'spec.defaultBackend', defaultBackend);
  for (const [index, { hosts = [] }] of (spec.tls ?? []).entries()) {
    for (const [at, host] of hosts.entries()) checkHost(errors, `spec.tls[${index}].hosts[${at}]`, host);
  }
  for (const [index, { host, http }] of rules.entries()) {
    const field = `spec.rules[${index}]`;
    if (host) checkHost(errors, `${field}.host`, host);
    if (http === undefined) continue;
    if ((http.paths ?? []).length === 0) errors.push(required(`${field}.http.paths`));
    for (const [at, path] of (http.paths ?? []).entries()) checkPath(errors, `${field}.http.paths[${at}]`, path);
  }
  return errors;
}

function checkHost(errors: FieldError[], field: string, host: string): void {
  if (parseIp(host) !== undefined) errors.push(invalid(field, host, 'must be a DNS name, not an IP address'));
  else checkText(errors, field, host, (text) => isDnsSubdomain(text.replace(/^\*\./, '')));
}

function checkPath(errors: FieldError[], field: string, { path, pathType, backend = {} }: Path): void {
  if (!pathType) errors.push(required(`${field}.pathType`));
  else checkOneOf(errors, `${field}.pathType`, pathType, ['Exact', 'ImplementationSpecific', 'Prefix']);
  const mayLackPath = pathType === 'ImplementationSpecific' && !path;
  if (!mayLackPath && !path?.startsWith('/')) errors.push(invalid(`${field}.path`, path, 'must be an absolute path'));
  checkBackend(errors, `${field}.backend`, backend);
}

function checkBackend(errors: FieldError[], field: string, { service, resource }: Backend): void {
  if (service !== undefined && resource !== undefined) {
    errors.push(invalid(field, '', 'cannot set both resource and service backends'));
  }
  if (service === undefined && resource === undefined) errors.push(required(field));
  if (service === undefined) return;
  checkRequiredText(errors, `${field}.service.name`, service.name, isDnsSubdomain);
  const { name, number } = service.port ?? {};
  if (name && number)
    errors.push(invalid(`${field}.service.port`, service.port, 'cannot set both port name & port number'));
  else if (name) checkText(errors, `${field}.service.port.name`, name, isPortName);
  else if (number) checkPortNumber(errors, `${field}.service.port.number`, number);
  else errors.push(required(`${field}.service.port`));
}

function validateClass({ spec = {} }: IngressClass, previous: IngressClass | undefined): FieldError[] {
  const errors: FieldError[] = [];
  checkRequiredText(errors, 'spec.controller', spec.controller, isDomainPrefixedPath);
  if (previous !== undefined) checkUnchanged(errors, 'spec.controller', spec.controller, previous.spec?.controller);
  const { scope, namespace } = spec.parameters ?? {};
  checkOneOf(errors, 'spec.parameters.scope', scope, ['Cluster', 'Namespace']);
  if (scope === 'Namespace' && !namespace) errors.push(required('spec.parameters.namespace'));
  return errors;
}

/** `example.com/name`: who serves the class, by a domain that is theirs. */
function isDomainPrefixedPath(text: string): string[] {
  const [domain = '', ...path] = text.split('/');
  if (path.length === 0 || path.includes('')) return ['must be a domain-prefixed path (such as "acme.io/foo")'];
  return text.length > 250 ? ['must be no more than 250 characters'] : isDnsSubdomain(domain);
}
