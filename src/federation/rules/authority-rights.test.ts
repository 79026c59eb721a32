import { describe, expect, test } from 'vitest';
import type { PolicyRule } from '../../kube/objects/rbac.ts';
import type { Federation, FederationSpec } from '../kinds/federation.ts';
import { authorityObjects } from './authority-rights.ts';

function rulesOf(spec: FederationSpec = {}): PolicyRule[] {
  const federation = { metadata: { name: 'world', namespace: 'prod' }, spec } as unknown as Federation;
  return authorityObjects('prod', federation).flatMap(({ object }) => (object as { rules?: PolicyRule[] }).rules ?? []);
}

const secretsIn = (rules: PolicyRule[]) =>
  rules.filter(({ resources, verbs }) => resources.includes('secrets') && verbs.includes('get'))[0]?.resourceNames;

describe('rights of an authority at the broker', () => {
  test('Secrets -> its own and those that the Federation names, by name', () => {
    const rfc2136 = { server: '192.0.2.53', tsigSecret: { name: 'zone' } };
    const spec: FederationSpec = {
      source: { tsigKeys: [{ name: 'resolvers' }, { name: 'zone' }] },
      public: { domain: 'example.com', provider: { type: 'RFC2136', rfc2136 } },
    };
    expect(secretsIn(rulesOf(spec))).toEqual(['portolan-federation-authority.world', 'resolvers', 'zone']);
    expect(secretsIn(rulesOf())).toEqual(['portolan-federation-authority.world']);
  });

  test('DNSEndpoints -> only with public names by them, in the namespace of the set', () => {
    const asked = (type: 'DNSEndpoint' | 'Webhook') =>
      rulesOf({ public: { domain: 'example.com', provider: { type } } }).filter(({ resources }) =>
        resources.includes('dnsendpoints'),
      );
    expect(asked('Webhook')).toEqual([]);
    expect(asked('DNSEndpoint').map(({ verbs }) => verbs)).toEqual([['get', 'list', 'create', 'update', 'delete']]);
  });

  test('everywhere -> it reads records and heartbeats of members, writes nothing, and has no wildcard', () => {
    const objects = rulesOf();
    expect(JSON.stringify(objects)).not.toContain('"*"');
    const everywhere = objects.filter(({ resources }) => resources.includes('serviceshards'));
    expect(everywhere.map(({ resources, verbs }) => [resources, verbs])).toEqual([
      [
        ['serviceshards', 'heartbeats'],
        ['get', 'list', 'watch'],
      ],
    ]);
  });
});
