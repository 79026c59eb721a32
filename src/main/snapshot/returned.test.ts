import { expect, test } from 'vitest';
import { returnedIn } from './returned.ts';

const shown = (key: string, object: object = {}) =>
  returnedIn({ key: `/registry/${key}`, value: Buffer.from(JSON.stringify({ metadata: { uid: 'u' }, ...object })) });

test('returned: accounts that somebody made -> listed; those that every namespace has, and other kinds -> not', () => {
  expect(shown('core/serviceaccounts/shop/robot')).toEqual({
    what: 'account',
    name: 'shop/robot',
    detail: '',
    uid: 'u',
  });
  expect(shown('core/serviceaccounts/shop/default')).toBeUndefined();
  expect(shown('core/configmaps/shop/robot')).toBeUndefined();
});

test('returned: a binding of an account that every namespace has -> listed with whom it is for', () => {
  const roleRef = { kind: 'ClusterRole', name: 'admin' };
  const subjects = [{ kind: 'ServiceAccount', namespace: 'shop', name: 'default' }];
  const binding = shown('rbac.authorization.k8s.io/clusterrolebindings/all', { roleRef, subjects });
  expect(binding?.detail).toBe('ClusterRole admin for ServiceAccount shop/default');
});
