import { expect, test } from 'vitest';
import { createTestApi } from '../testing/test-api.ts';

const labels = { app: 'x' };
const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } };

test('kinds that charts bring and nothing runs here -> stored with their defaults, refused where Kubernetes refuses them', async () => {
  const { ok, send } = await createTestApi();
  const sets = '/apis/apps/v1/namespaces/default/daemonsets';
  const warned = async (line: string, body: object) => (await send(`${line}?dryRun=All`, body)).headers['warning'];
  const made = await ok(`POST ${sets}`, {
    metadata: { name: 'd' },
    spec: { selector: { matchLabels: labels }, template },
  });
  expect(made.spec.updateStrategy).toEqual({
    type: 'RollingUpdate',
    rollingUpdate: { maxUnavailable: 1, maxSurge: 0 },
  });
  expect(made.spec.replicas).toBeUndefined();
  expect(await warned(`PUT ${sets}/d`, made)).toContain('this home stores the DaemonSet; nothing here runs it');
  const other = { ...made, spec: { ...made.spec, selector: { matchLabels: { app: 'y' } } } };
  expect((await send(`PUT ${sets}/d`, other)).status).toBe(422);

  const policies = '/apis/networking.k8s.io/v1/namespaces/default/networkpolicies';
  const policy = await ok(`POST ${policies}`, { metadata: { name: 'n' }, spec: { podSelector: {}, egress: [] } });
  expect(policy.spec.policyTypes).toEqual(['Ingress', 'Egress']);
  expect(await warned(`PUT ${policies}/n`, policy)).toContain('stores the NetworkPolicy; nothing here enforces it');
  const wrong = { metadata: { name: 'm' }, spec: { podSelector: {}, policyTypes: ['Sideways'] } };
  expect((await send(`POST ${policies}`, wrong)).status).toBe(422);

  for (const [ports, status] of [
    [[{ port: 80, endPort: 90 }], 201],
    [[{ port: 80, endPort: 79 }], 422],
    [[{ port: 'http', endPort: 90 }], 422],
    [[{ endPort: 90 }], 422],
  ] as const) {
    const ranged = { metadata: { generateName: 'r' }, spec: { podSelector: {}, egress: [{ ports }] } };
    expect((await send(`POST ${policies}`, ranged)).status).toBe(status);
  }

  const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
  const budget = await ok(`POST ${budgets}`, {
    metadata: { name: 'b' },
    spec: { minAvailable: '50%', selector: { matchLabels: labels } },
  });
  expect(await warned(`PUT ${budgets}/b`, budget)).toContain(
    'stores the PodDisruptionBudget; nothing here enforces it',
  );
  const both = { metadata: { name: 'c' }, spec: { minAvailable: 1, maxUnavailable: 1 } };
  expect((await send(`POST ${budgets}`, both)).status).toBe(422);
});

test('ReplicaSets and ReplicationControllers -> stored with a scale, refused where Kubernetes refuses them', async () => {
  const { ok, send } = await createTestApi();
  const sets = '/apis/apps/v1/namespaces/default/replicasets';
  const set = { metadata: { name: 'r' }, spec: { selector: { matchLabels: labels }, template } };
  const reply = await send(`POST ${sets}`, set);
  expect(reply.headers['warning']).toContain('stores the ReplicaSet; nothing here runs it');
  expect(reply.body.spec.replicas).toBe(1);
  expect(await ok(`GET ${sets}/r/scale`)).toMatchObject({ spec: { replicas: 1 }, status: { selector: 'app=x' } });
  const other = { ...reply.body, spec: { ...reply.body.spec, selector: { matchLabels: { app: 'y' } } } };
  expect((await send(`PUT ${sets}/r`, other)).status).toBe(422);

  const controllers = '/api/v1/namespaces/default/replicationcontrollers';
  const controller = await ok(`POST ${controllers}`, { metadata: { name: 'c' }, spec: { template } });
  expect(controller).toMatchObject({ metadata: { labels }, spec: { replicas: 1, selector: labels } });
  expect(await ok(`GET ${controllers}/c/scale`)).toMatchObject({ status: { selector: 'app=x' } });
  for (const spec of [{}, { template, selector: { app: 'y' } }, { template, replicas: -1 }]) {
    expect((await send(`POST ${controllers}`, { metadata: { name: 'd' }, spec })).status).toBe(422);
  }
});

test('PodTemplate -> stored with the defaults of its Pods', async () => {
  const { ok, send } = await createTestApi();
  const path = '/api/v1/namespaces/default/podtemplates';
  const made = await ok(`POST ${path}`, { metadata: { name: 't' }, template });
  expect(made.template.spec).toMatchObject({ restartPolicy: 'Always', dnsPolicy: 'ClusterFirst' });
  expect((await send(`POST ${path}`, { metadata: { name: 'u' }, template: { spec: {} } })).status).toBe(422);
});

test('Ingress and IngressClass -> stored, with columns', async () => {
  const { ok, send } = await createTestApi();
  const path = '/apis/networking.k8s.io/v1/namespaces/default/ingresses';
  const backend = { service: { name: 's', port: { number: 80 } } };
  const paths = [{ path: '/', pathType: 'Prefix', backend }];
  const spec = {
    ingressClassName: 'c',
    tls: [{ hosts: ['a.example'] }],
    rules: [{ host: '*.example', http: { paths } }],
  };
  const reply = await send(`POST ${path}`, { metadata: { name: 'i' }, spec });
  expect(reply.headers['warning']).toContain('stores the Ingress; nothing here serves it');
  const status = { loadBalancer: { ingress: [{ ip: '10.0.0.9' }] } };
  const annotations = { 'example.com/by': 'a-controller' };
  const metadata = { ...reply.body.metadata, annotations };
  expect((await ok(`PUT ${path}/i/status`, { ...reply.body, metadata, status })).metadata).toMatchObject({
    annotations,
  });
  const accept = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
  const { rows } = await ok(`GET ${path}`, undefined, accept);
  expect(rows[0].cells.slice(0, 5)).toEqual(['i', 'c', '*.example', '10.0.0.9', '80, 443']);

  const classes = '/apis/networking.k8s.io/v1/ingressclasses';
  const parameters = { kind: 'K', name: 'n' };
  const made = await ok(`POST ${classes}`, {
    metadata: { name: 'c' },
    spec: { controller: 'a.example/b', parameters },
  });
  expect(made.spec.parameters.scope).toBe('Cluster');
  expect((await send(`PUT ${classes}/c`, { ...made, spec: { controller: 'a.example/c' } })).status).toBe(422);
  expect((await send(`POST ${classes}`, { metadata: { name: 'd' }, spec: { controller: 'b' } })).status).toBe(422);
});

test.each([
  [{}, 'spec: Invalid value'],
  [{ defaultBackend: {} }, 'spec.defaultBackend: Required value'],
  [{ defaultBackend: { service: { name: 's' } } }, 'spec.defaultBackend.service.port: Required value'],
  [{ rules: [{ host: '10.0.0.1' }] }, 'spec.rules[0].host: Invalid value: "10.0.0.1": must be a DNS name'],
  [{ rules: [{ http: { paths: [] } }] }, 'spec.rules[0].http.paths: Required value'],
  [
    {
      rules: [{ http: { paths: [{ path: 'a', pathType: 'Exact', backend: { resource: { kind: 'K', name: 'n' } } }] } }],
    },
    'spec.rules[0].http.paths[0].path: Invalid value: "a": must be an absolute path',
  ],
])('Ingress %j -> refused: %s', async (spec, text) => {
  const { send } = await createTestApi();
  const reply = await send('POST /apis/networking.k8s.io/v1/namespaces/default/ingresses', {
    metadata: { name: 'i' },
    spec,
  });
  expect(reply.status).toBe(422);
  expect(reply.body.message).toContain(text);
});
