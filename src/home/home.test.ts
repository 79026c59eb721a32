// The edge, the request path and access control together, asked over real TLS by those who may and those who may not.

import { createPublicKey, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { createRealWorld } from '../base/real/world.ts';
import { createApi } from './api.ts';
import { type Bench, openBench, openTestPki, sendHttp2 } from './edge/testing/bench.ts';
import { builtinKinds, securityKinds } from './kinds/index.ts';
import { createMemoryStore } from './open-store.ts';
import type { AuditEvent } from './security/audit.ts';
import { ensureBootstrap } from './security/bootstrap.ts';
import { createAccess } from './security/create-access.ts';
import { parseKubeconfig } from './security/kubeconfig.ts';

let bench: Bench;
let certified: Awaited<ReturnType<typeof openTestPki>>;
const events: AuditEvent[] = [];
const dayMs = 24 * 60 * 60 * 1000;

beforeAll(async () => {
  certified = await openTestPki();
  const world = createRealWorld();
  const store = createMemoryStore({ world });
  const { serviceAccountKey } = certified.pki;
  const access = await createAccess({ world, store, log: silentLog, serviceAccountKey });
  const kinds = builtinKinds({ serviceRanges: ['10.96.0.0/16'], random: world.random, extra: securityKinds(access) });
  const api = await createApi({ world, store, kinds, access, log: silentLog });
  await api.start();
  await ensureBootstrap({ handle: api.handle });
  bench = await openBench(certified.pki, api.handle, { audit: { record: (event) => events.push(event) } });
});
afterAll(async () => {
  await bench.close();
  certified.remove();
});

async function admin() {
  const path = await certified.pki.adminKubeconfig({ server: `https://127.0.0.1:${bench.server.address.port}` });
  const content = parseKubeconfig(readFileSync(path, 'utf8'));
  return { certificate: content?.clientCertificate ?? '', key: content?.clientKey ?? '' };
}

describe('home: over TLS', () => {
  test('home: the admin kubeconfig -> may do everything, over both protocols', async () => {
    const credentials = await admin();
    const body = JSON.stringify({ metadata: { name: 'shop' } });
    const headers = { 'content-type': 'application/json' };
    const created = await sendHttp2(bench.http2(credentials), {
      method: 'POST',
      path: '/api/v1/namespaces',
      headers,
      body,
    });
    expect(created.status).toBe(201);
    expect((await bench.http1({ ...credentials, path: '/api/v1/namespaces/shop' })).status).toBe(200);
  });

  test('home: a token in place of a certificate -> the service account, until it is deleted', async () => {
    const credentials = await admin();
    const session = bench.http2(credentials);
    const headers = { 'content-type': 'application/json' };
    const path = '/api/v1/namespaces/default/serviceaccounts';
    const post = (to: string, body: object) =>
      sendHttp2(session, { method: 'POST', path: to, headers, body: JSON.stringify(body) });
    await post(path, { metadata: { name: 'till' } });
    const { token } = JSON.parse((await post(`${path}/till/token`, {})).body).status;
    const ask = () => bench.http1({ path: '/version', headers: { authorization: `Bearer ${token}` } });
    expect((await ask()).status).toBe(200);
    await sendHttp2(session, { method: 'DELETE', path: `${path}/till` });
    await expect.poll(async () => (await ask()).status).toBe(401);
  });

  test('home: a token is checked elsewhere -> issuer and key are found by OpenID discovery, for service accounts alone', async () => {
    const session = bench.http2(await admin());
    const path = '/api/v1/namespaces/default/serviceaccounts';
    const post = (to: string, body: object) =>
      sendHttp2(session, {
        ...{ method: 'POST', path: to, headers: { 'content-type': 'application/json' } },
        body: JSON.stringify(body),
      });
    await post(path, { metadata: { name: 'verifier' } });
    const { token } = JSON.parse((await post(`${path}/verifier/token`, {})).body).status as { token: string };
    const ask = async (from: string) =>
      JSON.parse((await bench.http1({ path: from, headers: { authorization: `Bearer ${token}` } })).body);
    const [header = '', payload = '', signature = ''] = token.split('.');
    const decode = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString());
    const configuration = await ask('/.well-known/openid-configuration');
    expect(configuration).toMatchObject({
      issuer: decode(payload).iss,
      id_token_signing_alg_values_supported: ['ES256'],
    });
    const { keys } = await ask(new URL(configuration.jwks_uri).pathname);
    const jwk = keys.find(({ kid }: { kid: string }) => kid === decode(header).kid);
    expect(jwk).not.toHaveProperty('d');
    const key = createPublicKey({ key: jwk, format: 'jwk' });
    const signed = Buffer.from(`${header}.${payload}`);
    const verified = verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'));
    expect(verified).toBe(true);
    expect((await bench.http1({ path: '/openid/v1/jwks' })).status).toBe(403);
  });

  test('home: no certificate -> health checks alone; a certificate of ours without rights -> 403', async () => {
    expect(await bench.http1({ path: '/livez' })).toMatchObject({ status: 200, body: 'ok' });
    expect((await bench.http1({ path: '/api/v1/namespaces' })).status).toBe(403);
    const ann = certified.pki.signClient({ commonName: 'ann', organizations: ['dev'], lifetimeMs: dayMs });
    expect((await bench.http1({ ...ann, path: '/api' })).status).toBe(200);
    const refused = await sendHttp2(bench.http2(ann), { path: '/api/v1/namespaces' });
    expect(JSON.parse(refused.body)).toMatchObject({ kind: 'Status', reason: 'Forbidden', code: 403 });
  });

  test('home: a certificate from elsewhere -> 401 Status, whatever is asked', async () => {
    const other = await openTestPki();
    const foreign = other.pki.signClient({ commonName: 'admin', organizations: ['system:masters'], lifetimeMs: dayMs });
    other.remove();
    for (const path of ['/api/v1/namespaces', '/livez']) {
      const answer = await bench.http1({ ...foreign, path });
      expect([answer.status, JSON.parse(answer.body).reason]).toEqual([401, 'Unauthorized']);
    }
  });

  test('home: audit -> names the user, the object and the outcome of what was refused too', async () => {
    events.length = 0;
    const ann = certified.pki.signClient({ commonName: 'ann', organizations: ['dev'], lifetimeMs: dayMs });
    await bench.http1({ ...ann, method: 'DELETE', path: '/api/v1/namespaces/default/services/web' });
    await expect.poll(() => events.length).toBe(1);
    expect(events[0]).toMatchObject({
      verb: 'delete',
      user: { username: 'ann', groups: ['dev', 'system:authenticated'] },
      objectRef: { resource: 'services', namespace: 'default', name: 'web' },
      responseStatus: { code: 403 },
    });
  });
});
