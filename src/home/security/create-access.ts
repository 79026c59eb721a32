// Authentication and authorization: the Access of the request path, over the store's roles, bindings and
// service accounts. Certificates were verified by the edge; rules are judged by rules.ts.

import { errorText, type Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import type { Access, ApiRequest, Attributes, Decision, User } from '../model/access.ts';
import { StatusError } from '../model/status.ts';
import { forbidden } from '../model/status-errors.ts';
import { followPrefix } from '../store/follow.ts';
import type { Store } from '../store/store.ts';
import { type Follower, follow } from './follow.ts';
import { parseImpersonation } from './impersonation.ts';
import { type BindingObject, RbacIndex, type RoleObject, type RoleRef } from './rbac-index.ts';
import { allows, type PolicyRule } from './rules.ts';
import { boundPrefixes, type IssuedToken, ServiceAccounts, type TokenOrder } from './service-accounts.ts';
import { TokenError } from './tokens.ts';

export interface AccessOptions {
  readonly world: Pick<World, 'clock' | 'random' | 'timers'>;
  readonly store: Store;
  readonly log: Log;
  /** PEM; `pki.serviceAccountKey`. */
  readonly serviceAccountKey: string;
  /** Issuer of tokens, and their audience by default. */
  readonly issuer?: string;
  readonly tokenLifetimeMsMax?: number;
  /** Other kinds of bearer tokens, asked in order after service accounts. Undefined: not one of ours. */
  readonly extraTokenAuthenticators?: readonly ((token: string) => Promise<User | undefined>)[];
}

interface TokenIdentity {
  readonly user: User;
  readonly audiences: readonly string[];
}

export interface ApiAccess extends Access {
  readonly issuer: string;
  readonly tokenLifetimeMsMax: number;
  /** Throws TokenError. */
  authenticateToken(token: string, audiences?: readonly string[]): Promise<TokenIdentity>;
  issueToken(order: TokenOrder): IssuedToken;
  /** Everything the user may do in the namespace, or with an empty one in the whole cluster. */
  rulesOf(user: User, namespace: string): readonly PolicyRule[];
  rulesOfRole(roleRef: RoleRef, namespace: string): readonly PolicyRule[] | undefined;
  close(): void;
}

const anonymous: User = { name: 'system:anonymous', groups: ['system:unauthenticated'] };
const masters = 'system:masters';
const publicPaths = ['/livez', '/readyz', '/healthz', '/.well-known/portolan-ca'];
const everything: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
];
const rbac = 'rbac.authorization.k8s.io';

export async function createAccess(options: AccessOptions): Promise<ApiAccess> {
  const issuer = options.issuer ?? 'https://kubernetes.default.svc';
  const index = new RbacIndex();
  const accounts = new ServiceAccounts({
    ...options.world,
    store: options.store,
    signingKey: options.serviceAccountKey,
    issuer,
  });
  const listeners = new Set<() => void>();
  const told = () => {
    for (const listener of listeners) listener();
  };
  const followings = await Promise.all(
    followers(index, accounts).map((follower) => follow(options, withNotice(follower, told))),
  );
  const goneListeners = new Set<(key: string) => void>();
  const bound = boundPrefixes.map((prefix) =>
    followPrefix({
      ...options,
      prefix,
      onEvent: ({ key, entry }) => {
        if (entry === undefined) for (const listener of goneListeners) listener(key);
      },
    }),
  );
  followings.push(...(await Promise.all(bound)));
  const authenticateToken = (token: string, audiences: readonly string[] = [issuer]) =>
    bearer({ token, audiences, accounts, options });
  const authorize = (user: User, attributes: Attributes) => decide(index, user, attributes);
  return {
    issuer,
    tokenIssuer: { issuer, keys: accounts.publicKeys },
    tokenLifetimeMsMax: options.tokenLifetimeMsMax ?? 366 * 24 * 60 * 60 * 1000,
    authenticate: async (request) => {
      if (request.clientCertificate !== undefined)
        return impersonate(request, certified(request.clientCertificate), authorize);
      const user = await authenticateRequest(request, authenticateToken).catch((error) => {
        options.log.debug('credentials were refused', { path: request.path, error: errorText(error) });
        throw error;
      });
      return impersonate(request, user, authorize);
    },
    authorize,
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onGone: (listener) => {
      goneListeners.add(listener);
      return () => goneListeners.delete(listener);
    },
    credentialOf: ({ clientCertificate, headers }) => {
      if (clientCertificate !== undefined) return clientCertificate;
      const token = bearerToken(headers['authorization'] ?? '');
      return token === undefined ? {} : accounts.credentialOf(token);
    },
    authenticateToken,
    issueToken: (order) => accounts.issue(order),
    rulesOf: (user, namespace) => (isMaster(user) ? everything : index.rulesOf(user, namespace)),
    rulesOfRole: (roleRef, namespace) => index.rulesOfRole(roleRef, namespace),
    close: () => {
      for (const following of followings) following.cancel();
    },
  };
}

function followers(index: RbacIndex, accounts: ServiceAccounts) {
  const as = <T>(object: AnyObject) => object as unknown as T;
  const type = (plural: string) => ({ group: rbac, plural });
  return [
    {
      type: type('roles'),
      onSet: (object: AnyObject) => index.setRole(as<RoleObject>(object)),
      onRemove: (namespace: string, name: string) => index.removeRole(namespace, name),
    },
    {
      type: type('clusterroles'),
      onSet: (object: AnyObject) => index.setClusterRole(as<RoleObject>(object)),
      onRemove: (_: string, name: string) => index.removeClusterRole(name),
    },
    {
      type: type('rolebindings'),
      onSet: (object: AnyObject) => index.setBinding(as<BindingObject>(object)),
      onRemove: (namespace: string, name: string) => index.removeBinding(namespace, name),
    },
    {
      type: type('clusterrolebindings'),
      onSet: (object: AnyObject) => index.setBinding(as<BindingObject>(object)),
      onRemove: (_: string, name: string) => index.removeBinding('', name),
    },
    {
      type: { group: '', plural: 'serviceaccounts' },
      onSet: ({ metadata: { namespace = '', name, uid = '' } }: AnyObject) => accounts.set(namespace, name, uid),
      onRemove: (namespace: string, name: string) => accounts.remove(namespace, name),
    },
  ];
}

function withNotice(follower: Follower, told: () => void): Follower {
  return {
    type: follower.type,
    onSet: (object) => {
      follower.onSet(object);
      told();
    },
    onRemove: (namespace, name) => {
      follower.onRemove(namespace, name);
      told();
    },
  };
}

function certified({ commonName, organizations }: NonNullable<ApiRequest['clientCertificate']>): User {
  return { name: commonName, groups: [...organizations, 'system:authenticated'] };
}

// A good token counts even beside a bad certificate: the certificate may belong to another mesh.
async function authenticateRequest(
  request: ApiRequest,
  authenticateToken: (token: string) => Promise<TokenIdentity>,
): Promise<User> {
  const { clientCertificateError } = request;
  const header = request.headers['authorization'];
  if (header !== undefined) return (await authenticateHeader(header, authenticateToken)).user;
  if (clientCertificateError !== undefined) throw unauthorized(`client certificate: ${clientCertificateError}`);
  return anonymous;
}

async function authenticateHeader(
  header: string,
  authenticateToken: (token: string) => Promise<TokenIdentity>,
): Promise<TokenIdentity> {
  const token = bearerToken(header);
  if (token === undefined) throw unauthorized('the authorization header has no bearer token');
  try {
    return await authenticateToken(token);
  } catch (error) {
    if (error instanceof TokenError) throw unauthorized(error.message, error);
    throw error;
  }
}

function bearerToken(header: string): string | undefined {
  return /^bearer +([^ ]+) *$/i.exec(header)?.[1];
}

interface BearerRequest {
  readonly token: string;
  readonly audiences: readonly string[];
  readonly accounts: ServiceAccounts;
  readonly options: AccessOptions;
}

async function bearer({ token, audiences, accounts, options }: BearerRequest): Promise<TokenIdentity> {
  try {
    return await accounts.authenticate(token, audiences);
  } catch (error) {
    if (!(error instanceof TokenError)) throw error;
    for (const authenticate of options.extraTokenAuthenticators ?? []) {
      const user = await authenticate(token);
      if (user !== undefined) return { user, audiences };
    }
    throw error;
  }
}

// The reason for a refused credential goes to the log by way of the cause, and not to the client.
function unauthorized(why: string, cause: unknown = new Error(why)): StatusError {
  return new StatusError('Unauthorized', 'Unauthorized', { cause });
}

function impersonate(
  request: ApiRequest,
  user: User,
  authorize: (user: User, attributes: Attributes) => Decision,
): User {
  const { trail } = request;
  if (trail !== undefined) trail.user = user;
  const impersonation = parseImpersonation(request.headers);
  if (impersonation === undefined) return user;
  for (const attributes of impersonation.needs) {
    const decision = authorize(user, attributes);
    if (!decision.isAllowed) throw forbidden(user, attributes, decision.reason);
  }
  if (trail !== undefined) {
    trail.impersonator = user;
    trail.user = impersonation.user;
  }
  return impersonation.user;
}

function decide(index: RbacIndex, user: User, attributes: Attributes): Decision {
  if (isMaster(user)) return { isAllowed: true, reason: '' };
  if (attributes.path !== undefined && isPublic(attributes.verb, attributes.path)) {
    return { isAllowed: true, reason: '' };
  }
  const grant = index.find(user, attributes.namespace, (rule) => allows(rule, attributes));
  if (grant === undefined) return { isAllowed: false, reason: '' };
  return { isAllowed: true, reason: `RBAC: allowed by ${grant.binding}` };
}

function isMaster(user: User): boolean {
  return user.groups.includes(masters);
}

function isPublic(verb: string, path: string): boolean {
  if (verb !== 'get' && verb !== 'head') return false;
  return publicPaths.some((open) => path === open || path.startsWith(`${open}/`));
}
