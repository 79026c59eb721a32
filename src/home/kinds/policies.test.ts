import { expect, test } from 'vitest';
import { createTestApi } from '../testing/test-api.ts';

const labels = { app: 'x' };
const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } };

test('kinds that charts bring and nothing runs here -> stored with their defaults, refused where Kubernetes refuses them', async () => {
  const { ok, send } = await createTestApi();
  const sets = '/apis/apps/v1/namespaces/default/daemonsets';
  const made = await ok(`POST ${sets}`, {
    metadata: { name: 'd' },
    spec: { selector: { matchLabels: labels }, template },
  });
  expect(made.spec.updateStrategy).toEqual({
    type: 'RollingUpdate',
    rollingUpdate: { maxUnavailable: 1, maxSurge: 0 },
  });
  expect(made.spec.replicas).toBeUndefined();
  const other = { ...made, spec: { ...made.spec, selector: { matchLabels: { app: 'y' } } } };
  expect((await send(`PUT ${sets}/d`, other)).status).toBe(422);

  const policies = '/apis/networking.k8s.io/v1/namespaces/default/networkpolicies';
  const policy = await ok(`POST ${policies}`, { metadata: { name: 'n' }, spec: { podSelector: {}, egress: [] } });
  expect(policy.spec.policyTypes).toEqual(['Ingress', 'Egress']);
  const wrong = { metadata: { name: 'm' }, spec: { podSelector: {}, policyTypes: ['Sideways'] } };
  expect((await send(`POST ${policies}`, wrong)).status).toBe(422);

  const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
  await ok(`POST ${budgets}`, {
    metadata: { name: 'b' },
    spec: { minAvailable: '50%', selector: { matchLabels: labels } },
  });
  const both = { metadata: { name: 'c' }, spec: { minAvailable: 1, maxUnavailable: 1 } };
  expect((await send(`POST ${budgets}`, both)).status).toBe(422);
});
