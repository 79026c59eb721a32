import { describe, expect, test } from 'vitest';
import { mayExport } from './may-export.ts';

describe('may export', () => {
  test.each<[string[] | undefined | null, string, boolean]>([
    [undefined, 'shop/checkout', true],
    [null, 'shop/checkout', true],
    [[], 'shop/checkout', false],
    [['*'], 'shop/checkout', true],
    [['shop'], 'shop/checkout', true],
    [['shop'], 'shop2/checkout', false],
    [['team-*'], 'team-a/checkout', true],
    [['team-*'], 'teams/checkout', false],
    [['*-prod', 'shop/*'], 'shop/cart', true],
    [['shop/check*'], 'shop/checkout', true],
    [['shop/check*'], 'shop/cart', false],
    [['a*b*c'], 'a-b-b-c/x', true],
    [['a*b*c'], 'a-c-b/x', false],
    [['ab*ba'], 'aba/x', false],
    [['a*x*c'], 'a-b-c/x', false],
    [['*b*'], 'b-a/x', true],
    [['*b*b'], 'b/x', false],
    [['a*b*b'], 'a-b/x', false],
    [['shop*'], 'shop/x', true],
    [['*shop'], 'shops/x', false],
    [[''], 'shop/checkout', false],
    [undefined, 'kube-system/kube-dns', false],
    [['*'], 'kube-system/kube-dns', false],
    [['kube-*'], 'kube-system/kube-dns', false],
    [['*/kube-dns'], 'kube-system/kube-dns', false],
    [['kube-system'], 'kube-system/kube-dns', true],
    [['kube-system/kube-dns'], 'kube-system/kube-dns', true],
    [['kube-system/kube-*'], 'kube-system/kube-dns', true],
    [['kube-system/metrics'], 'kube-system/kube-dns', false],
    [undefined, 'kube-public/x', false],
    [undefined, 'portolan-system/portolan-dns', false],
    [undefined, 'portolan-external/x', false],
    [undefined, 'default/kubernetes', false],
    [['default'], 'default/kubernetes', false],
    [['default/*'], 'default/kubernetes', false],
    [['default/kubernetes'], 'default/kubernetes', true],
    [undefined, 'default/web', true],
    [undefined, 'shop/kubernetes', true],
    [undefined, 'kubernetes/x', true],
  ])('may export: %j, %s -> %s', (patterns, key, outcome) => {
    const [namespace = '', name = ''] = key.split('/');
    expect(mayExport({ mayExport: patterns as string[] | undefined }, { namespace, name })).toBe(outcome);
  });
});
