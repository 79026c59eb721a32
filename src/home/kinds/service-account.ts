// The ServiceAccount kind, and the tokens that can be asked for in its name.

import { invalid, notSupported } from '../../kube/objects/field-error.ts';
import type { AnyObject, KubernetesObject } from '../../kube/objects/object.ts';
import { schemaOf } from '../messages/schemas.ts';
import { column, nameColumn } from '../model/columns.ts';
import { type Kind, keyPrefixOf, type RequestContext } from '../model/kind.ts';
import { invalidObject, StatusError } from '../model/status.ts';
import { objectKey, textOf } from '../model/stored.ts';
import { applySchemaDefaults } from '../schema/defaults.ts';
import { validateSchema } from '../schema/validate.ts';
import type { ApiAccess } from '../security/create-access.ts';
import type { TokenOrder } from '../security/service-accounts.ts';
import type { Store } from '../store/store.ts';
import { builtinKind } from './builtin.ts';

const authentication = 'authentication.k8s.io';
const lifetimeSecondsMin = 600;
const lifetimeSecondsDefault = 3600;

type ServiceAccount = KubernetesObject & { secrets?: unknown[] };

export function createServiceAccountKind(access: ApiAccess): Kind {
  return builtinKind<ServiceAccount>({
    group: '',
    version: 'v1',
    kind: 'ServiceAccount',
    plural: 'serviceaccounts',
    isNamespaced: true,
    shortNames: ['sa'],
    columns: [nameColumn, column<ServiceAccount>('Secrets', ({ secrets }) => secrets?.length ?? 0, 'integer')],
    behaviour: {
      subresources: {
        token: {
          group: authentication,
          version: 'v1',
          kind: 'TokenRequest',
          create: (body, parent, context) => createToken(access, body, parent, context),
        },
      },
    },
  });
}

interface TokenRequestSpec {
  audiences?: string[];
  expirationSeconds?: number;
  boundObjectRef?: { kind?: string; apiVersion?: string; name?: string; uid?: string };
}

async function createToken(
  access: ApiAccess,
  body: AnyObject,
  account: AnyObject,
  { store }: RequestContext,
): Promise<AnyObject> {
  const { namespace = '', name, uid = '' } = account.metadata;
  const spec = readSpec(body, name);
  const lifetimeMs = Math.min((spec.expirationSeconds ?? lifetimeSecondsDefault) * 1000, access.tokenLifetimeMsMax);
  const audiences = (spec.audiences ?? []).length === 0 ? [access.issuer] : (spec.audiences ?? []);
  const boundTo = await findBound(store, namespace, spec.boundObjectRef);
  const order = { namespace, account: { name, uid }, audiences, lifetimeMs, ...(boundTo && { boundTo }) };
  const { token, expiresMs } = access.issueToken(order);
  return {
    apiVersion: `${authentication}/v1`,
    kind: 'TokenRequest',
    metadata: { ...body.metadata, name, namespace },
    spec: { ...spec, audiences, expirationSeconds: lifetimeMs / 1000 },
    status: { token, expirationTimestamp: new Date(expiresMs).toISOString().replace('.000Z', 'Z') },
  };
}

function readSpec(body: AnyObject, name: string): TokenRequestSpec {
  // Go programs send null for what they leave out; defaults take that away.
  applySchemaDefaults(schemaOf('authentication.v1.TokenRequest'), body);
  const spec = (body['spec'] ?? {}) as TokenRequestSpec;
  const errors = validateSchema(schemaOf('authentication.v1.TokenRequestSpec'), spec, 'spec');
  const { expirationSeconds = lifetimeSecondsDefault, boundObjectRef } = spec;
  if (errors.length === 0 && expirationSeconds < lifetimeSecondsMin) {
    const why = `must be at least ${lifetimeSecondsMin}`;
    errors.push(invalid('spec.expirationSeconds', expirationSeconds, why));
  }
  if (errors.length === 0 && boundObjectRef !== undefined && pluralOf(boundObjectRef.kind) === undefined) {
    errors.push(notSupported('spec.boundObjectRef.kind', boundObjectRef.kind ?? '', ['Pod', 'Secret']));
  }
  if (errors.length > 0) throw invalidObject({ group: authentication, kind: 'TokenRequest', name }, errors);
  return spec;
}

/** The object that a token lives and dies with. */
async function findBound(
  store: Store,
  namespace: string,
  wanted: TokenRequestSpec['boundObjectRef'],
): Promise<TokenOrder['boundTo']> {
  const plural = pluralOf(wanted?.kind);
  if (wanted === undefined || plural === undefined) return undefined;
  const name = wanted.name ?? '';
  const entry = await store.get(objectKey(keyPrefixOf({ group: '', plural }), namespace, name));
  if (entry === undefined) throw new StatusError('NotFound', `${plural} ${JSON.stringify(name)} not found`);
  const { metadata } = JSON.parse(textOf(entry.value)) as AnyObject;
  if ((wanted.uid ?? '') !== '' && wanted.uid !== metadata.uid) {
    const why = `its uid is ${metadata.uid}, spec.boundObjectRef says ${wanted.uid}`;
    throw new StatusError('Conflict', `Operation cannot be fulfilled on ${plural} ${JSON.stringify(name)}: ${why}`);
  }
  return { kind: plural === 'pods' ? 'Pod' : 'Secret', name, uid: metadata.uid ?? '' };
}

function pluralOf(kind: string | undefined): 'pods' | 'secrets' | undefined {
  if (kind === 'Pod') return 'pods';
  return kind === 'Secret' ? 'secrets' : undefined;
}
