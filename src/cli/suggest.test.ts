import { describe, expect, test } from 'vitest';
import { startHome } from '../../sim/home.ts';
import { Simulation } from '../../sim/virtual-world.ts';
import { serviceExportType } from '../clusterset/kinds/service-export.ts';
import { namespaceType } from '../kube/objects/namespace.ts';
import { didYouMean, findService } from './suggest.ts';

const known = ['shop/cart', 'shop/checkout', 'web/checkout'];

describe('did you mean', () => {
  test.each([
    ['shop/chekout', '; did you mean shop/checkout or web/checkout?'],
    ['default/cart', '; did you mean shop/cart?'],
    ['shop/catr', '; did you mean shop/cart?'],
    ['default/checkout', '; did you mean shop/checkout or web/checkout?'],
    ['default/chekout', '; did you mean shop/checkout or web/checkout?'],
    ['default/card', '; did you mean shop/cart?'],
    ['default/ca', ''],
    ['shop/payments', ''],
  ])('%s -> %s', (typed, expected) => expect(didYouMean(typed, known)).toBe(expected));
});

test('a name without a namespace -> that of the context, else the only one; several -> all of them named', async () => {
  const simulation = new Simulation({ seed: 1 });
  const home = await startHome(simulation);
  const client = home.clientOf(simulation.world('cli'));
  const settle = <T>(promise: Promise<T>) => simulation.time.settle(promise);
  for (const key of known) {
    const [namespace = '', name = ''] = key.split('/');
    const made = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } };
    await settle(client.create(namespaceType, made).catch(() => made));
    const { group, version, kind } = serviceExportType;
    const object = { apiVersion: `${group}/${version}`, kind, metadata: { name, namespace } };
    await settle(client.create(serviceExportType, object));
  }
  const find = (text: string, namespace = 'default') => settle(findService(client, text, namespace));
  expect(await find('cart')).toEqual({ namespace: 'shop', name: 'cart' });
  expect(await find('checkout', 'web')).toEqual({ namespace: 'web', name: 'checkout' });
  expect(await find('other/cart')).toEqual({ namespace: 'other', name: 'cart' });
  expect(await find('none')).toEqual({ namespace: 'default', name: 'none' });
  await expect(find('checkout')).rejects.toThrow(
    'service checkout: there are several; write shop/checkout or web/checkout',
  );
});
