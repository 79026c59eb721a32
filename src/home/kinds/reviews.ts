// Questions as objects: access reviews, rules of the user, the user itself, token reviews. Each is answered at once
// and stored nowhere.

import type { AnyObject } from '../../kube/objects/object.ts';
import type { Attributes, User } from '../model/access.ts';
import type { Kind, RequestContext } from '../model/kind.ts';
import { invalidObject, StatusError } from '../model/status.ts';
import { validateSchema } from '../schema/validate.ts';
import type { ApiAccess } from '../security/create-access.ts';
import { TokenError } from '../security/tokens.ts';
import { builtinKind } from './builtin.ts';

const authorization = 'authorization.k8s.io';
const authentication = 'authentication.k8s.io';

export function createReviewKinds(access: ApiAccess): Kind[] {
  return [
    reviewKind({
      group: authorization,
      kind: 'SelfSubjectAccessReview',
      answer: async (review, { user }) => judge(access, user, specOf<AccessSpec>(review)),
    }),
    reviewKind({
      group: authorization,
      kind: 'SubjectAccessReview',
      answer: async (review) => judge(access, subjectOf(review), specOf<AccessSpec>(review)),
    }),
    reviewKind({
      group: authorization,
      kind: 'LocalSubjectAccessReview',
      isNamespaced: true,
      answer: async (review) => judge(access, subjectOf(review), localSpec(review)),
    }),
    reviewKind({
      group: authorization,
      kind: 'SelfSubjectRulesReview',
      answer: async (review, { user }) =>
        rulesStatus(access, user, specOf<{ namespace?: string }>(review).namespace ?? ''),
    }),
    reviewKind({
      group: authentication,
      kind: 'SelfSubjectReview',
      answer: async (_review, { user }) => ({ userInfo: userInfo(user) }),
    }),
    reviewKind({
      group: authentication,
      kind: 'TokenReview',
      answer: async (review) => tokenStatus(access, specOf<TokenSpec>(review)),
    }),
  ];
}

interface Review {
  readonly group: string;
  readonly kind: string;
  readonly isNamespaced?: boolean;
  readonly answer: (review: AnyObject, context: RequestContext) => Promise<Record<string, unknown>>;
}

function reviewKind({ group, kind, isNamespaced = false, answer }: Review): Kind {
  const built: Kind = builtinKind<AnyObject>({
    group,
    version: 'v1',
    kind,
    plural: `${kind.toLowerCase()}s`,
    isNamespaced,
    nameRule: 'pathSegment',
    behaviour: {
      verbs: ['create'],
      review: async (object, context) => {
        checkTypes(built, object);
        return { ...object, status: await answer(object, context) };
      },
    },
  });
  // Its status is the answer, not a subresource.
  return { ...built, versions: built.versions.map((version) => ({ ...version, hasStatus: false })) };
}

function checkTypes(kind: Kind, review: AnyObject): void {
  const schema = kind.versions[0]?.schema.properties?.['spec'];
  if (schema === undefined) return;
  const errors = validateSchema(schema, review['spec'] ?? {}, 'spec');
  const subject = { group: kind.group, kind: kind.kind, name: review.metadata.name ?? '' };
  if (errors.length > 0) throw invalidObject(subject, errors);
}

interface ResourceAttributes {
  namespace?: string;
  verb?: string;
  group?: string;
  version?: string;
  resource?: string;
  subresource?: string;
  name?: string;
}

interface AccessSpec {
  resourceAttributes?: ResourceAttributes;
  nonResourceAttributes?: { path?: string; verb?: string };
  user?: string;
  groups?: string[];
  uid?: string;
  extra?: Record<string, string[]>;
}

interface TokenSpec {
  token?: string;
  audiences?: string[];
}

function specOf<T>(review: AnyObject): T {
  return (review['spec'] ?? {}) as T;
}

function judge(access: ApiAccess, user: User, spec: AccessSpec): Record<string, unknown> {
  const { isAllowed, reason } = access.authorize(user, attributesOf(spec));
  return { allowed: isAllowed, ...(reason === '' ? {} : { reason }) };
}

function attributesOf(spec: AccessSpec): Attributes {
  const { resourceAttributes: of, nonResourceAttributes: ofPath } = spec;
  if ((of === undefined) === (ofPath === undefined)) {
    throw new StatusError('BadRequest', 'spec: set resourceAttributes or nonResourceAttributes, and not both');
  }
  return {
    verb: of?.verb ?? ofPath?.verb ?? '',
    ...(ofPath === undefined ? {} : { path: ofPath.path ?? '' }),
    group: of?.group ?? '',
    version: of?.version ?? '',
    resource: of?.resource ?? '',
    subresource: of?.subresource ?? '',
    namespace: of?.namespace ?? '',
    name: of?.name ?? '',
  };
}

function subjectOf(review: AnyObject): User {
  const { user = '', groups = [], uid, extra } = specOf<AccessSpec>(review);
  if (user === '' && groups.length === 0) {
    throw new StatusError('BadRequest', 'spec: set user, groups or both');
  }
  return { name: user, groups, uid, extra };
}

function localSpec(review: AnyObject): AccessSpec {
  const spec = specOf<AccessSpec>(review);
  const { namespace } = review.metadata;
  if (spec.resourceAttributes === undefined || spec.resourceAttributes.namespace !== namespace) {
    throw new StatusError('BadRequest', `spec.resourceAttributes.namespace: must be ${JSON.stringify(namespace)}`);
  }
  return spec;
}

function rulesStatus(access: ApiAccess, user: User, namespace: string): Record<string, unknown> {
  if (namespace === '') throw new StatusError('BadRequest', 'no namespace on request');
  const rules = access.rulesOf(user, namespace);
  const resourceRules = rules.filter((rule) => (rule.resources ?? []).length > 0);
  const nonResourceRules = rules.filter((rule) => (rule.nonResourceURLs ?? []).length > 0);
  return {
    resourceRules: resourceRules.map(({ verbs, apiGroups, resources, resourceNames }) => ({
      verbs,
      apiGroups,
      resources,
      resourceNames,
    })),
    nonResourceRules: nonResourceRules.map(({ verbs, nonResourceURLs }) => ({ verbs, nonResourceURLs })),
    incomplete: false,
  };
}

function userInfo(user: User): Record<string, unknown> {
  const { name: username, uid, groups, extra } = user;
  return { username, uid, groups, extra };
}

async function tokenStatus(access: ApiAccess, spec: TokenSpec): Promise<Record<string, unknown>> {
  if ((spec.token ?? '') === '') throw new StatusError('BadRequest', 'spec.token: token is required for TokenReview');
  try {
    const asked = (spec.audiences ?? []).length === 0 ? undefined : spec.audiences;
    const { user, audiences } = await access.authenticateToken(spec.token ?? '', asked);
    return { authenticated: true, user: userInfo(user), audiences };
  } catch (error) {
    if (!(error instanceof TokenError)) throw error;
    return { authenticated: false, error: error.message };
  }
}
