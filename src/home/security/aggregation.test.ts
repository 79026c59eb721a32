import { describe, expect, test } from 'vitest';
import { type AggregableRole, effectiveRules } from './aggregation.ts';

const plain = (name: string, labels: Record<string, string>): AggregableRole => ({
  name,
  labels,
  rules: [{ verbs: ['get'], apiGroups: [''], resources: [name] }],
});
const made = (name: string, of: string, labels: Record<string, string> = {}): AggregableRole => ({
  name,
  labels,
  rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
  selectors: [{ matchLabels: { [of]: 'true' } }],
});
const resources = (role: AggregableRole, all: AggregableRole[]) =>
  effectiveRules(role, all)
    .map((rule) => rule.resources?.[0])
    .sort();

describe('aggregation', () => {
  test('aggregation: a role made of others -> their rules, and not its own', () => {
    const view = made('view', 'to-view');
    const all = [view, plain('pods', { 'to-view': 'true' }), plain('secrets', { 'to-view': 'false' })];
    expect(resources(view, all)).toEqual(['pods']);
  });

  test('aggregation: roles made of roles made of roles -> all of them, circles included', () => {
    const admin = made('admin', 'to-admin', { 'to-view': 'true' });
    const edit = made('edit', 'to-edit', { 'to-admin': 'true' });
    const view = made('view', 'to-view', { 'to-edit': 'true' });
    const all = [admin, edit, view, plain('pods', { 'to-view': 'true' }), plain('roles', { 'to-admin': 'true' })];
    expect(resources(admin, all)).toEqual(['pods', 'roles']);
  });

  test('aggregation: the same rule by two ways -> counts once', () => {
    const view = made('view', 'to-view');
    const twin = { ...plain('pods', { 'to-view': 'true' }), name: 'twin' };
    expect(resources(view, [view, plain('pods', { 'to-view': 'true' }), twin])).toEqual(['pods']);
  });

  test('aggregation: a role with rules of its own -> just those', () => {
    expect(resources(plain('pods', {}), [])).toEqual(['pods']);
  });
});
