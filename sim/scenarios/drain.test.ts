// Draining: no new connections to a cluster, or to its part of a service, while those that are open go on.

import { describe, expect, test } from 'vitest';
import { type ServiceExport, serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import type { Client } from '../../src/kube/client/client.ts';
import {
  type EndpointSlice,
  endpointSliceType,
  importedServiceNameLabel,
  sourceClusterLabel,
} from '../../src/kube/objects/endpoint-slice.ts';
import { SimClusterSet, setName } from '../clusterset.ts';
import { openDesk, typeAt } from '../command.ts';
import { find } from '../look.ts';
import { exportService } from '../manifests.ts';

const key = 'shop/checkout';

/** `east ready`, `east leaving`, `east down` for each endpoint. */
async function states(client: Client): Promise<string[]> {
  const labelSelector = `${importedServiceNameLabel}=checkout`;
  const { items } = await client.list<EndpointSlice>(endpointSliceType, { namespace: 'shop', labelSelector });
  return items
    .flatMap(({ metadata, endpoints }) =>
      endpoints.map(({ conditions }) => {
        const { ready, serving, terminating } = conditions ?? {};
        const state = ready && !terminating ? 'ready' : !ready && serving && terminating ? 'leaving' : 'down';
        return `${metadata.labels?.[sourceClusterLabel]} ${state}`;
      }),
    )
    .sort();
}

async function start() {
  const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start({ namespaces: ['shop'] });
  const [east, west] = [set.home('east').admin, set.home('west').admin];
  await exportService(east, key, { endpoints: ['10.1.0.1'] });
  await exportService(west, key, { endpoints: ['10.2.0.1'] });
  await set.time.advance(4_000);
  const type = async (id: string, words: string) => {
    const lines = await set.time.settle(typeAt(await openDesk(set, id), words));
    await set.time.advance(4_000);
    return lines.join('\n');
  };
  return { set, east, west, type };
}

describe('drain', () => {
  test("drain: one cluster's part of a service -> leaving everywhere, said by status and explain; undone -> back", async () => {
    const { east, west, type } = await start();
    expect(await type('east', `drain ${key}`)).toBe(
      'shop/checkout is draining here: new connections go to other clusters',
    );
    for (const home of [east, west]) expect(await states(home)).toEqual(['east leaving', 'west ready']);
    expect(await type('west', 'status')).toContain(`draining: cluster east takes no new connections for ${key}`);
    expect(await type('west', `explain ${key}`)).toMatch(/^east .* yes, draining /m);
    expect(await type('east', `drain ${key}`)).toContain('draining here already');
    expect(await type('east', `drain ${key} --undo`)).toBe('shop/checkout takes new connections here again');
    for (const home of [east, west]) expect(await states(home)).toEqual(['east ready', 'west ready']);
    const annotations = (await find<ServiceExport>(east, serviceExportType, key))?.metadata.annotations ?? {};
    expect(annotations).toEqual({});
  });

  test('drain: a cluster, at the broker, also while its agent is down -> leaving everywhere; undone -> back', async () => {
    const { set, east, west, type } = await start();
    set.killAgent('east');
    expect(await type('broker', `drain east --clusterset ${setName}`)).toBe(
      'cluster east is draining: new connections go to other clusters',
    );
    expect(await states(west)).toEqual(['east leaving', 'west ready']);
    expect(await type('west', 'status')).toContain('draining: cluster east takes no new connections');
    set.startAgent('east');
    await set.time.advance(10_000);
    expect(await states(east)).toEqual(['east leaving', 'west ready']);
    await type('broker', `drain east --clusterset ${setName} --undo`);
    for (const home of [east, west]) expect(await states(home)).toEqual(['east ready', 'west ready']);
  });

  test('drain: what is not there -> an error that says what to write', async () => {
    const { set } = await start();
    const at = async (id: string, words: string) => set.time.settle(typeAt(await openDesk(set, id), words));
    await expect(at('east', 'drain shop/none')).rejects.toThrow('this cluster does not export it');
    await expect(at('east', 'drain east')).rejects.toThrow("give the broker's --kubeconfig");
  });
});
