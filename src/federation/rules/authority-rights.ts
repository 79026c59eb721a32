// The account of a federation's authority at the broker, and the rights that it uses there: it reads the shards of all members
// and its Federation, writes the status of that, and reads the Secrets that the Federation names. Pure.

import { memberLeaseName } from '../../clusterset/rules/broker-layout.ts';
import { ticketRule } from '../../kube/objects/admin-ticket.ts';
import { type Manifest, manifest } from '../../kube/objects/manifest.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import {
  clusterRoleBindingType,
  clusterRoleType,
  type PolicyRule,
  readVerbs,
  roleBindingType,
  roleRefOf,
  roleType,
  type Subject,
  serviceAccountType,
} from '../../kube/objects/rbac.ts';
import type { Federation } from '../kinds/federation.ts';
import { federationAuthoritySecret, federationLeaseName, postedNotesName, publishedNotesName } from './broker-names.ts';

const own = 'portolan.dev';
const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] };
const configMaps = { apiGroups: [''], resources: ['configmaps'] };
const secrets = { apiGroups: [''], resources: ['secrets'] };

/** In the namespace of the clusterset. */
export function authorityAccount(federation: string): string {
  return `portolan-federation.${federation}`;
}

export function authorityObjects(clusterset: string, federation: Federation): Manifest[] {
  const { name } = federation.metadata;
  const account = { name: authorityAccount(name), namespace: clusterset };
  const self: Subject = { kind: 'ServiceAccount', ...account };
  const everywhere = { name: `portolan-federation.${clusterset}.${name}` };
  const inNamespace = (namespace: string, rules: PolicyRule[]) => [
    manifest(roleType, { ...account, namespace }, { rules }),
    manifest(
      roleBindingType,
      { ...account, namespace },
      { subjects: [self], roleRef: roleRefOf('Role', account.name) },
    ),
  ];
  return [
    manifest(serviceAccountType, account, {}),
    ...inNamespace(clusterset, setRules(clusterset, federation)),
    // Where the parts of a home report: it has no other home.
    manifest(namespaceType, { name: systemNamespace }, {}),
    ...inNamespace(systemNamespace, [{ ...leases, verbs: ['get', 'create', 'update', 'delete'] }]),
    manifest(clusterRoleType, everywhere, { rules: memberRules }),
    manifest(clusterRoleBindingType, everywhere, {
      subjects: [self],
      roleRef: roleRefOf('ClusterRole', everywhere.name),
    }),
  ];
}

/** In the namespace of the clusterset alone, for an external-dns that runs at the broker. */
const dnsEndpoints: PolicyRule = {
  apiGroups: ['externaldns.k8s.io'],
  resources: ['dnsendpoints'],
  verbs: ['get', 'list', 'create', 'update', 'delete'],
};

/** For all members, because namespaces come later. */
const memberRules: PolicyRule[] = [
  { apiGroups: [own], resources: ['serviceshards', 'heartbeats'], verbs: [...readVerbs] },
  // For authorities of the release before, which also read the Lease of a member that seems dead.
  { ...leases, resourceNames: [memberLeaseName], verbs: ['get'] },
  // It checks who asks it through the broker.
  ticketRule,
];

function setRules(clusterset: string, federation: Federation): PolicyRule[] {
  const { metadata, spec } = federation;
  const { name } = metadata;
  return [
    { apiGroups: [own], resources: ['clustersets'], resourceNames: [clusterset], verbs: ['get'] },
    { apiGroups: [own], resources: ['clusters', 'federations'], verbs: [...readVerbs] },
    { apiGroups: [own], resources: ['federations/status'], resourceNames: [name], verbs: ['patch'] },
    { ...leases, verbs: ['create'] },
    { ...leases, resourceNames: [federationLeaseName(name)], verbs: ['get', 'update'] },
    // Where something of it must be removed later: resolvers and public zones.
    { ...configMaps, verbs: ['create'] },
    { ...configMaps, resourceNames: [postedNotesName(name), publishedNotesName(name)], verbs: ['get', 'update'] },
    // A new token before the old one ends.
    {
      ...{ apiGroups: [''], resources: ['serviceaccounts/token'], resourceNames: [authorityAccount(name)] },
      verbs: ['create'],
    },
    ...(spec?.public?.provider.type === 'DNSEndpoint' ? [dnsEndpoints] : []),
    { ...secrets, verbs: ['create'] },
    { ...secrets, resourceNames: [federationAuthoritySecret(name), ...namedSecrets(federation)], verbs: ['get'] },
  ];
}

/** Keys of trusted resolvers and of the public zone. */
function namedSecrets({ spec }: Federation): string[] {
  const published = spec?.public?.provider.rfc2136?.tsigSecret.name;
  const keys = (spec?.source?.tsigKeys ?? []).map(({ name }) => name);
  return [...new Set([...keys, ...(published === undefined ? [] : [published])])];
}
