// A whole home in memory with its real access control, and people who ask it for things.

import { Simulation } from '../../../../sim/virtual-world.ts';
import { readBody } from '../../../base/http.ts';
import { silentLog } from '../../../base/log.ts';
import type { Network } from '../../../base/world.ts';
import { generatePrivateKey } from '../../../base/x509/edge/keys.ts';
import { type Api, type ApiOptions, createApi } from '../../api.ts';
import { builtinKinds, securityKinds } from '../../kinds/index.ts';
import type { ApiRequest } from '../../model/access.ts';
import { createMemoryStore } from '../../open-store.ts';
import type { Store } from '../../store/store.ts';
import { ensureBootstrap } from '../bootstrap.ts';
import { type AccessOptions, type ApiAccess, createAccess } from '../create-access.ts';

interface Reply {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look wherever they want to in an answer.
  readonly body: any;
}

/** `GET /api/v1/pods`, and a body as an object. */
type Ask = (line: string, body?: object, headers?: Record<string, string>) => Promise<Reply>;

export interface Home {
  readonly access: ApiAccess;
  readonly api: Api;
  readonly store: Store;
  readonly simulation: Simulation;
  readonly handle: (request: ApiRequest) => ReturnType<Awaited<ReturnType<typeof createApi>>['handle']>;
  readonly admin: Ask;
  user(name: string, ...groups: string[]): Ask;
  bearer(token: string): Ask;
  readonly nobody: Ask;
  /** Creates objects as the admin, and waits until they are in force. */
  given(...objects: object[]): Promise<void>;
  /** A token for a ServiceAccount, asked for by the admin. */
  token(place: string, spec?: object): Promise<string>;
}

/** `network` in place of the simulated one. */
export async function openHome(
  options: Partial<AccessOptions> & { network?: Network } & Pick<ApiOptions, 'partRanges' | 'authority'> = {},
): Promise<Home> {
  const simulation = new Simulation({ seed: 1 });
  const simulated = simulation.world('home');
  const world = { ...simulated, network: options.network ?? simulated.network };
  const store = createMemoryStore({ world });
  const serviceAccountKey = generatePrivateKey();
  const access = await createAccess({ world, store, log: silentLog, serviceAccountKey, ...options });
  const kinds = builtinKinds({ serviceRanges: ['10.96.0.0/16'], random: world.random, extra: securityKinds(access) });
  const { partRanges, authority } = options;
  const api = await createApi({ world, store, kinds, access, log: silentLog, partRanges, authority });
  await api.start();
  await ensureBootstrap({ handle: api.handle });
  const asker =
    (identity: Partial<ApiRequest>, base: Record<string, string> = {}): Ask =>
    async (line, body, headers = {}) => {
      const [method = '', path = ''] = line.split(' ');
      const bytes = body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) };
      const response = await api.handle({ method, path, headers: { ...base, ...headers }, ...bytes, ...identity });
      const text = Buffer.from(await readBody(response.body)).toString();
      return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text };
    };
  const user: Home['user'] = (commonName, ...organizations) =>
    asker({ clientCertificate: { commonName, organizations } });
  const admin = user('admin', 'system:masters');
  const home: Home = {
    access,
    api,
    store,
    simulation,
    handle: api.handle,
    admin,
    user,
    bearer: (token) => asker({}, { authorization: `Bearer ${token}` }),
    nobody: asker({}),
    given: async (...objects) => {
      for (const object of objects) await create(admin, object);
      await simulation.time.drain();
    },
    token: async (place, spec = {}) => {
      const [namespace, name] = place.split('/');
      const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
      const reply = await admin(`POST ${path}`, { spec });
      if (reply.status !== 201) throw new Error(`${path}: ${reply.status} ${reply.body.message}`);
      return reply.body.status.token;
    },
  };
  await simulation.time.drain();
  return home;
}

async function create(admin: Ask, object: object): Promise<void> {
  const { apiVersion, kind, metadata } = object as {
    apiVersion: string;
    kind: string;
    metadata: { namespace?: string };
  };
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const place = metadata.namespace === undefined ? root : `${root}/namespaces/${metadata.namespace}`;
  const reply = await admin(`POST ${place}/${kind.toLowerCase()}s`, object);
  if (reply.status !== 201) throw new Error(`create ${kind}: ${reply.status} ${reply.body.message}`);
}

export const rbac = 'rbac.authorization.k8s.io/v1';
export const rbacPath = `/apis/${rbac}`;

export function namespace(name: string): object {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
}

export function account(place: string): object {
  const [inNamespace, name] = place.split('/');
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: inNamespace, name } };
}

export interface RuleText {
  readonly verbs: string[];
  readonly apiGroups?: string[];
  readonly resources?: string[];
  readonly resourceNames?: string[];
  readonly nonResourceURLs?: string[];
}

/** `shop/reader` is a Role, `reader` a ClusterRole. */
export function role(place: string, ...rules: RuleText[]): object {
  return { apiVersion: rbac, kind: kindOf(place, 'Role'), metadata: metadataOf(place), rules };
}

/** `binding('shop/b', 'Role/reader', 'User/ann', 'ServiceAccount/shop/till')` */
export function binding(place: string, roleRef: string, ...subjects: string[]): object {
  const [roleKind, roleName] = roleRef.split('/');
  return {
    apiVersion: rbac,
    kind: kindOf(place, 'RoleBinding'),
    metadata: metadataOf(place),
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: roleKind, name: roleName },
    subjects: subjects.map(subjectOf),
  };
}

export function subjectOf(text: string): object {
  const [kind, first, second] = text.split('/');
  if (kind === 'ServiceAccount') return { kind, namespace: first, name: second };
  return { kind, apiGroup: 'rbac.authorization.k8s.io', name: first };
}

function kindOf(place: string, kind: string): string {
  return place.includes('/') ? kind : `Cluster${kind}`;
}

function metadataOf(place: string): object {
  const [first, second] = place.split('/');
  return second === undefined ? { name: first } : { namespace: first, name: second };
}
