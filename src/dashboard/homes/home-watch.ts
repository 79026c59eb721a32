// One home as one bearer sees it: copies of the kinds that pages show, a pulse, and how current all of it is. A home that has
// ClusterSets is watched as a broker.

import type { HttpAccess } from '../../base/http.ts';
import type { World } from '../../base/world.ts';
import {
  type ClusterProperty,
  clusterIdProperty,
  clusterPropertyType,
} from '../../clusterset/kinds/cluster-property.ts';
import { type ClusterSet, clusterSetType } from '../../clusterset/kinds/cluster-set.ts';
import { type Client, createClient } from '../../kube/client/client.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import type { HomeRow } from '../wire/rows.ts';
import { KindCopy, type KindOptions } from './kind-copy.ts';
import { type BrokerKinds, brokerKinds, type MemberKinds, memberKinds } from './kinds.ts';
import { keepPulse, type Pulse } from './pulse.ts';

/** A home that this dashboard shows; the credentials are the bearer's. */
export interface DashboardHome {
  readonly name: string;
  readonly access: Omit<
    HttpAccess,
    'bearerToken' | 'clientCertificate' | 'clientKey' | 'clientCertificatePair' | 'onUnauthorized'
  >;
}

type Copies<Kinds> = { readonly [Name in keyof Kinds]: KindCopy<Kinds[Name] & KubernetesObject> };
export type WatchedKind = keyof MemberKinds | keyof BrokerKinds | 'sets' | 'properties';

export interface HomeWatch {
  readonly home: DashboardHome;
  readonly client: Client | undefined;
  /** Undefined until it is known that there is something to watch. */
  readonly member: Copies<MemberKinds> | undefined;
  readonly broker: Copies<BrokerKinds> | undefined;
  readonly set: ClusterSet | undefined;
  readonly clusterId: string;
  pulse(): Pulse;
  row(): HomeRow;
  /** How many objects are held of it. */
  objects(): number;
  /** Whether what is known of it is current. */
  isCurrent(): boolean;
  stop(): void;
}

export interface HomeWatchOptions {
  readonly world: World;
  readonly home: DashboardHome;
  readonly token: string | undefined;
  readonly namespaces: readonly string[];
  readonly onChange: (kind: WatchedKind, key: string, object: KubernetesObject | undefined) => void;
  /** Something about its state may have changed. */
  readonly onState: () => void;
}

export function watchHome(options: HomeWatchOptions): HomeWatch {
  const { world, home, token, namespaces, onChange, onState } = options;
  if (token === undefined) return unasked(home);
  const transport = world.network.http({ ...home.access, bearerToken: async () => token });
  const client = createClient(transport, { world, userAgent: 'portolan-dashboard', requestTimeoutMs: 15_000 });
  const all: KindCopy<KubernetesObject>[] = [];
  let member: Copies<MemberKinds> | undefined;
  let broker: Copies<BrokerKinds> | undefined;

  function copy<T extends KubernetesObject>(kind: WatchedKind, kindOptions: KindOptions<T>): KindCopy<T> {
    const made = new KindCopy<T>({
      ...kindOptions,
      ...{ client, world, namespaces },
      onChange: (key, next, previous) => onChange(kind, key, next ?? previous),
      onState: () => settle(),
    });
    all.push(made as unknown as KindCopy<KubernetesObject>);
    return made;
  }
  let isDeciding = true;
  const sets = copy<ClusterSet>('sets', { type: clusterSetType });
  const properties = copy<ClusterProperty>('properties', { type: clusterPropertyType });
  const pulse = keepPulse({ world, transport, onPulse: () => settle() });
  isDeciding = false;

  /** Both kinds decide together what is watched: a broker alone has no services of its own. */
  function settle(): void {
    if (isDeciding) return;
    isDeciding = true;
    const isKnown = areSettled([sets, properties]);
    if (isKnown && sets.size > 0) broker ??= copiesOf(brokerKinds, copy);
    if (isKnown && (sets.size === 0 || properties.size > 0)) member ??= copiesOf(memberKinds, copy);
    isDeciding = false;
    onState();
  }

  const watch: HomeWatch = {
    home,
    client,
    get member() {
      return member;
    },
    get broker() {
      return broker;
    },
    get set() {
      return sets.values().sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))[0];
    },
    get clusterId() {
      return properties.get(clusterIdProperty)?.spec.value ?? '';
    },
    pulse: () => pulse.now(),
    row: () => rowOf(watch, all, pulse.now()),
    objects: () => all.reduce((sum, { size }) => sum + size, 0),
    isCurrent: () => ['live', 'behind'].includes(watch.row().state),
    stop: () => {
      pulse.stop();
      for (const one of all) one.stop();
      client.close();
    },
  };
  return watch;
}

function areSettled(copies: readonly Pick<KindCopy<never>, 'state'>[]): boolean {
  return copies.every((one) => ['live', 'denied', 'unserved'].includes(one.state().kind));
}

function copiesOf<Kinds>(
  table: { readonly [Name in keyof Kinds]: KindOptions<Kinds[Name]> },
  copy: <T extends KubernetesObject>(kind: WatchedKind, options: KindOptions<T>) => KindCopy<T>,
): Copies<Kinds> {
  const entries = Object.entries(table) as [WatchedKind, KindOptions<KubernetesObject>][];
  return Object.fromEntries(entries.map(([kind, options]) => [kind, copy(kind, options)])) as unknown as Copies<Kinds>;
}

function rowOf(watch: HomeWatch, copies: readonly KindCopy<KubernetesObject>[], { answer, atMs, why }: Pulse): HomeRow {
  const states = copies.map((one) => ({ plural: one.type.plural, state: one.state(), namespaces: one.namespaces() }));
  const names = (kind: string) => states.filter(({ state }) => state.kind === kind).map(({ plural }) => plural);
  const narrowed = states.flatMap(({ namespaces, state }) => (state.kind === 'denied' ? [] : (namespaces ?? [])));
  const isNarrow = states.some(({ state, namespaces }) => state.kind !== 'denied' && namespaces !== undefined);
  const isLimited = isNarrow || names('denied').length > 0;
  const common = {
    name: watch.home.name,
    cluster: watch.clusterId,
    role: watch.broker !== undefined ? 'broker' : watch.clusterId !== '' ? 'member' : 'home',
    asOfMs: atMs,
    waitsFor: names('loading'),
    denied: [...new Set(names('denied'))].sort(),
    namespaces: isLimited ? [...new Set(narrowed)].sort() : undefined,
  } as const;
  const out = states.find(({ state }) => state.kind === 'signed out')?.state;
  if (out?.kind === 'signed out' || answer?.status === 401)
    return { ...common, state: 'signed out', why: 'The token is not accepted there: wrong, expired or revoked' };
  if (why !== '') return { ...common, state: 'lost', why };
  const failing = states.flatMap(({ state }) => (state.kind === 'failing' ? [state.why] : []));
  if (failing.length > 0) return { ...common, state: 'behind', why: failing[0] ?? '' };
  if (answer === undefined || common.waitsFor.length > 0 || (watch.member ?? watch.broker) === undefined)
    return { ...common, state: 'loading', why: `waiting for ${common.waitsFor.join(', ') || 'its first answer'}` };
  return { ...common, state: 'live', why: '' };
}

function unasked(home: DashboardHome): HomeWatch {
  const row: HomeRow = {
    name: home.name,
    cluster: '',
    role: 'home',
    state: 'signed out',
    why: 'No token was given for it',
    asOfMs: 0,
    waitsFor: [],
    denied: [],
    namespaces: undefined,
  };
  return {
    ...{ home, client: undefined, member: undefined, broker: undefined, set: undefined, clusterId: '' },
    pulse: () => ({ answer: undefined, atMs: 0, why: row.why }),
    row: () => row,
    objects: () => 0,
    isCurrent: () => false,
    stop: () => {},
  };
}
