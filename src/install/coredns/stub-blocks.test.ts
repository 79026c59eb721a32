// Checks that the block of the guide is the generated one, and that each cloud gets it in its own form.

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { corefileBlock, defaultZones, stubText } from './stub-blocks.ts';

const request = { addresses: ['10.96.0.20', '10.96.0.21'], zones: defaultZones };

describe('stub blocks', () => {
  test('CoreDNS -> the block of the guide, which npm run check:coredns tries on a real one', () => {
    const guide = readFileSync(new URL('../../../docs/guides/dns.md', import.meta.url), 'utf8');
    expect(/```corefile\n([^`]+)```/.exec(guide)![1]).toBe(corefileBlock(request));
  });

  test('AKS -> the ConfigMap coredns-custom with a key that ends with .server', () => {
    expect(parse(stubText('aks', request, stringify))).toMatchObject({
      kind: 'ConfigMap',
      metadata: { name: 'coredns-custom', namespace: 'kube-system' },
      data: { 'portolan.server': corefileBlock(request) },
    });
  });

  test('EKS -> the whole Corefile as configuration value: ours behind the one that it has', () => {
    const { corefile } = JSON.parse(stubText('eks', request, stringify));
    expect(corefile.startsWith('.:53 {\n')).toBe(true);
    expect(corefile.endsWith(corefileBlock(request))).toBe(true);
    const own = JSON.parse(stubText('eks', { ...request, corefile: 'own:53 {\n}\n' }, stringify));
    expect(own.corefile.startsWith('own:53 {')).toBe(true);
  });
});
