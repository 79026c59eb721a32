import { createPublicKey } from 'node:crypto';
import { expect, test } from 'vitest';
import type { PlainAnswer } from '../../base/grpc/server-options.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';
import { identityUri } from '../identity/proxy-identity.ts';
import { issuancePath, type TokenBearer } from '../identity/proxy-token.ts';
import { Issuance } from './issuance.ts';

const publicKey = createPublicKey(generatePrivateKey()).export({ type: 'spki', format: 'pem' }).toString();
const account = (name: string) => `system:serviceaccount:portolan-system:${name}`;

function ask(
  review: (token: string) => Promise<TokenBearer | undefined>,
  body: unknown = { token: 'good', publicKey },
  issuance = serving(review),
): Promise<PlainAnswer> {
  const route = issuance.route({ path: issuancePath });
  if (route === undefined || !('withBody' in route)) throw new Error('no route');
  return Promise.resolve(route.withBody(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))));
}

function serving(review: (token: string) => Promise<TokenBearer | undefined>): Issuance {
  return new Issuance({
    cluster: 'east',
    sidecarAccounts: new Set(['shop/web']),
    review,
    claimedAudiences: (token) => (token === 'other' ? ['kubernetes'] : ['portolan-xds']),
    certify: identityUri,
  });
}

const of =
  (username: string, pod = 'envoy-1') =>
  async () => ({ username, pod });

test.each([
  [account('portolan-envoy'), 'sidecar/envoy-1'],
  [account('portolan-ingress'), 'ingress/envoy-1'],
  ['system:serviceaccount:shop:web', 'sidecar/shop.envoy-1/ns/shop/sa/web'],
])(
  'issuance: a token of %s -> a certificate for the role of the account and the name of the Pod',
  async (user, path) => {
    const { status, body } = await ask(of(user));
    expect([status, JSON.parse(body)]).toEqual([200, { certificate: `spiffe://portolan/cluster/east/xds/${path}` }]);
  },
);

test.each<[string, () => Promise<PlainAnswer>, number]>([
  ['that is not valid', () => ask(async () => undefined), 401],
  [
    'for another audience, which is not even asked about',
    () => ask(of(account('portolan-envoy')), { token: 'other', publicKey }),
    401,
  ],
  ['of another part', () => ask(of(account('portolan-dns'))), 403],
  [
    'of an account of that name in another namespace',
    () => ask(of('system:serviceaccount:shop:portolan-ingress')),
    403,
  ],
  ['of an account that xds was not told of', () => ask(of('system:serviceaccount:shop:db')), 403],
  ['of no account, whatever its name', () => ask(of('shop:web')), 403],
  ['that is bound to no Pod', () => ask(of(account('portolan-ingress'), '')), 403],
  ['of a workload that is bound to no Pod', () => ask(of('system:serviceaccount:shop:web', '')), 403],
  ['of a Pod whose name is no name of a proxy', () => ask(of(account('portolan-ingress'), 'a~b')), 403],
  ['while the home does not answer', () => ask(() => Promise.reject(new Error('secret words'))), 503],
])('issuance: a token %s -> no certificate, and nothing of the home in the answer', async (_what, answer, status) => {
  const { status: found, body } = await answer();
  expect([found, body.includes('BEGIN'), body.includes('secret words')]).toEqual([status, false, false]);
});

test.each(['', '{', '[]', '{"token":1}', '{"token":"good"}', '{"token":"good","publicKey":"x"}', 'null'])(
  'issuance: the body %j -> 400',
  async (body) => {
    expect((await ask(of(account('portolan-envoy')), body)).status).toBe(400);
  },
);

test('issuance: many at once -> four are asked about, the others get 429; then there is room again', async () => {
  const waiting: (() => void)[] = [];
  const review = () =>
    new Promise<TokenBearer>((resolve) => {
      waiting.push(() => resolve({ username: account('portolan-envoy'), pod: 'envoy-1' }));
    });
  const issuance = serving(review);
  const body = { token: 'good', publicKey };
  const answers = Array.from({ length: 6 }, () => ask(review, body, issuance));
  expect((await Promise.all(answers.slice(4))).map(({ status }) => status)).toEqual([429, 429]);
  for (const go of waiting.splice(0)) go();
  expect((await Promise.all(answers.slice(0, 4))).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  const after = ask(review, body, issuance);
  await expect.poll(() => waiting.length).toBe(1);
  waiting[0]?.();
  expect((await after).status).toBe(200);
});
