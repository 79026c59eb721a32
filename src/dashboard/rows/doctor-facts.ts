// The facts that doctor's checks need, from the copies of one home: what is not there, old or refused is a reason, as when
// doctor could not read it. Some facts only the command reads: Secrets, answers of resolvers, connections.

import { version } from '../../base/version.ts';
import { refusedRecords } from '../../clusterset/explain/refused-records.ts';
import { enforcementOf } from '../../clusterset/rules/access/enforcement.ts';
import { parseAccessMode, stricterMode } from '../../clusterset/rules/access/mode.ts';
import type { BrokerFacts, ClusterFacts, Read } from '../../doctor/facts.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import { partStatuses } from '../../kube/objects/part-status.ts';
import { readAccessReport } from '../../kube/objects/reports/access-report.ts';
import type { HomeWatch } from '../homes/home-watch.ts';
import type { KindCopy } from '../homes/kind-copy.ts';
import { idOf, type Landscape, pairsOf, setStateOf } from './landscape.ts';

const commandOnly = 'only portolan doctor checks this';

/** Undefined while it is not known yet, and where the bearer was refused altogether. */
export function doctorFacts(
  landscape: Landscape,
  watch: HomeWatch,
  behind: readonly string[],
): ClusterFacts | undefined {
  const { state, why } = watch.row();
  if (state === 'loading' || state === 'signed out') return undefined;
  const { answer } = watch.pulse();
  const health = state === 'lost' || answer === undefined ? { why } : { value: answer };
  const { member, broker } = watch;
  const read = <T extends KubernetesObject>(copy: KindCopy<T> | undefined): Read<readonly T[]> =>
    state === 'lost'
      ? { why: `the home does not answer: ${why}` }
      : copy === undefined
        ? { value: [] }
        : readCopy(copy);
  const leases = read(member?.leases);
  const unread = { why: commandOnly };
  return {
    cluster: idOf(watch),
    nowMs: landscape.nowMs,
    ownVersion: version,
    server: watch.home.access.server,
    health,
    membership: unread,
    broker: state === 'lost' ? { why: `the home does not answer: ${why}` } : setFacts(landscape, watch, behind),
    parts: 'why' in leases ? leases : { value: partStatuses(leases.value, landscape.nowMs) },
    federations: read(broker?.federations),
    exports: read(member?.exports),
    imports: read(member?.imports),
    policies: read(member?.policies),
    services: read(member?.services),
    slices: read(member?.slices),
    claims: read(member?.claims),
    peers: read(member?.peers),
    peerExports: read(member?.peerExports),
    external: read(member?.external),
    certificates: unread,
    forbidden: [],
    asked: unread,
    resolvers: unread,
    connections: unread,
    clusterDns: unread,
    pairs: state === 'lost' ? { why: `the home does not answer: ${why}` } : pairsAt(landscape, watch),
    access: 'why' in leases ? leases : accessAt(landscape, watch, leases.value),
  };
}

/** The home's own setting is not watched: where it is stricter, its proxies report it. */
function accessAt(landscape: Landscape, watch: HomeWatch, leases: readonly Lease[]): ClusterFacts['access'] {
  if (watch.member === undefined || watch.clusterId === '') return { value: undefined };
  const set = setStateOf(landscape, { viewpoint: watch, keys: [] })?.policy.access;
  const reported = leases.flatMap((lease) => parseAccessMode(readAccessReport(lease)?.mode) ?? []);
  if (set === undefined && reported.length === 0) return { why: commandOnly };
  const mode = [...reported, set ?? 'Open'].reduce(stricterMode);
  return { value: enforcementOf({ mode, leases, nodes: undefined, nowMs: landscape.nowMs }) };
}

/** Without a broker among the homes, the networks are not known. */
function pairsAt(landscape: Landscape, watch: HomeWatch): ClusterFacts['pairs'] {
  if (watch.member === undefined || watch.clusterId === '') return { value: [] };
  const state = setStateOf(landscape, { viewpoint: watch, keys: [] });
  return state === undefined ? { why: commandOnly } : { value: pairsOf(watch, state, landscape.nowMs) };
}

function readCopy<T extends KubernetesObject>(copy: KindCopy<T>): Read<readonly T[]> {
  const state = copy.state();
  if (state.kind === 'live') return { value: copy.values() };
  if (state.kind === 'unserved') return { value: [] };
  if (state.kind === 'denied') return { why: `you may not read ${copy.type.plural}` };
  return { why: `${copy.type.plural}: ${'why' in state ? state.why : 'not read yet'}` };
}

function setFacts(landscape: Landscape, watch: HomeWatch, behind: readonly string[]): Read<BrokerFacts> {
  const isMember = watch.member !== undefined && watch.clusterId !== '';
  if (!isMember && watch.broker === undefined) return { value: { kind: 'none' } };
  // Records are judged once, at the broker.
  const state = setStateOf(landscape, watch.broker === undefined ? { viewpoint: watch, keys: [] } : {});
  if (state === undefined) return { why: 'no broker that you may see is among the homes of this dashboard' };
  return { value: { kind: 'answers', set: { state, refused: state.members.flatMap(refusedRecords), behind } } };
}
