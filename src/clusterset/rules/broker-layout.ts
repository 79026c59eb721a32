// How the broker is laid out: which namespaces a clusterset has, and how the things of its members are called. Pure.

import { createHash } from 'node:crypto';
import { isDnsLabel, isDnsSubdomain } from '../../base/dns/labels.ts';

/** Each member renews the lease of this name in its own namespace. */
export const memberLeaseName = 'portolan-agent';

/** An observer's LivenessReport, in its own namespace. */
export const livenessReportName = 'portolan-liveness';

/** ConfigMap in a member's namespace: what the member said of itself when it joined. */
export const memberRecordName = 'portolan-member';

/** On namespaces of members: the cluster they belong to, and the set. */
export const clusterIdAnnotation = 'portolan.dev/cluster';
export const clusterSetLabel = 'portolan.dev/clusterset';

const nameLengthMax = 63;
const digestLength = 10;

/** Namespace of the members' accounts. */
export function membersNamespace(clusterset: string): string {
  return `${clusterset}-members`;
}

/** A member's own namespace. Different for different ids, although a namespace has no dots and an id may. */
export function memberNamespace(clusterset: string, id: string): string {
  const plain = `${clusterset}-m-${id}`;
  if (!id.includes('.') && plain.length <= nameLengthMax) return plain;
  const digest = createHash('sha256').update(id).digest('hex').slice(0, digestLength);
  const head = `${clusterset}-m-${id.replaceAll('.', '-')}`.slice(0, nameLengthMax - digestLength - 2);
  return `${head.replace(/-+$/, '')}-x${digest}`;
}

/** The account's name is the cluster's id. */
export function memberRoleName(id: string): string {
  return `portolan-member.${id}`;
}

/** In the members' namespace: the lease that the agents of one cluster share, so that one of them works at a time. */
export function leaderLeaseName(id: string): string {
  return id;
}

/** The Secret that a join token lives and dies with. */
export function joinSecretName(id: string): string {
  return `portolan-join.${id}`;
}

/**
 * Returns why a text is no valid name of a clusterset: `<name>-members` and `<name>-m-<slug>` must be names of
 * namespaces too.
 */
export function clusterSetNameProblem(name: string): string | undefined {
  if (name.length > clusterSetNameLengthMax) return `must be no more than ${clusterSetNameLengthMax} characters`;
  const [problem] = isDnsLabel(name);
  if (problem !== undefined) return problem;
  if (reservedNames.has(name) || name.startsWith('kube-')) return 'is a namespace that a cluster has of its own';
  // Otherwise two sets could want one namespace. Without these, what stands before the first `-m-` is the set.
  if (name.endsWith('-members')) return 'ends like the namespace of accounts of another set; leave -members out';
  if (`${name}-`.includes('-m-')) return 'looks like the namespace of a member of another set; leave -m- out';
  return undefined;
}

const reservedNames: ReadonlySet<string> = new Set(['default', 'portolan-system', 'portolan-external']);

const clusterSetNameLengthMax = 40;
/** Imported slices carry the id as a label's value, which holds no more. */
const clusterIdLengthMax = 63;

/** As the About API has it: an RFC 1123 subdomain of one or two labels. */
export function clusterIdProblem(id: string): string | undefined {
  if (id === '') return 'must not be empty';
  if (id.length > clusterIdLengthMax) return `must be no more than ${clusterIdLengthMax} characters`;
  const labels = id.split('.');
  if (labels.length > 2) return 'has more than two labels; write NAME or NAME.CONTEXT';
  return isDnsSubdomain(id)[0];
}
