import { expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { silentLog } from '../../base/log.ts';
import { parseRange } from '../../base/net/ip.ts';
import type { ServiceImport } from '../../clusterset/kinds/service-import.ts';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import { ProxyState } from '../state.ts';
import { KernelModel } from '../testing/kernel-model.ts';
import { emptyViewInput, viewOf } from '../view.ts';
import { NftApplier } from './applier.ts';
import type { Nft } from './edge/nft.ts';

const ranges = [parseRange('243.0.0.0/12')!];

test('applier: before everything was read -> no transaction; the rules of an earlier run stay', async () => {
  const { sim, state, scripts } = start();
  state.facts.upsertServiceImport(importOf());
  await sim.time.advance(10_000);
  expect(scripts).toEqual([]);
});

test('applier: changes that come together -> one transaction', async () => {
  const { sim, state, applier, scripts, backends } = start();
  await sim.time.settle(applier.start());
  state.facts.upsertServiceImport(importOf());
  state.facts.upsertEndpointSlice(sliceOf(['10.0.0.1']));
  state.facts.upsertEndpointSlice(sliceOf(['10.0.0.1', '10.0.0.2']));
  await sim.time.settle(applier.settled());
  expect(scripts).toHaveLength(2);
  expect(backends()).toEqual(['10.0.0.1 . 8080', '10.0.0.2 . 8080']);
});

test('applier: a transaction is refused -> everything is written anew, and the kernel is as wanted', async () => {
  const { sim, state, applier, scripts, backends, fail } = start();
  await sim.time.settle(applier.start());
  fail('No such file or directory', 1);
  state.facts.upsertServiceImport(importOf());
  state.facts.upsertEndpointSlice(sliceOf(['10.0.0.1']));
  await sim.time.settle(applier.settled());
  expect(scripts).toHaveLength(3);
  expect([applier.status().problem, backends()]).toEqual(['', ['10.0.0.1 . 8080']]);
});

test('applier: the kernel lacks a feature -> says so, keeps the good rules, and is ready when it can', async () => {
  const { sim, state, applier, scripts, backends, fail } = start();
  state.facts.upsertServiceImport(importOf());
  state.facts.upsertEndpointSlice(sliceOf(['10.0.0.1']));
  await sim.time.settle(applier.start());
  fail('Operation not supported', 1000);
  state.facts.upsertEndpointSlice(sliceOf(['10.0.0.2']));
  await sim.time.advance(120_000);
  expect([applier.status().problem, backends()]).toEqual(['Operation not supported', ['10.0.0.1 . 8080']]);
  expect(scripts.length, 'tries are spaced').toBeLessThan(40);
  fail('', 0);
  await sim.time.advance(60_000);
  expect([applier.status().problem, backends()]).toEqual(['', ['10.0.0.2 . 8080']]);
});

test('applier: another process changes the table a hundred times a second -> put right once a second', async () => {
  const { sim, state, applier, kernel, scripts, backends } = start();
  state.facts.upsertServiceImport(importOf());
  state.facts.upsertEndpointSlice(sliceOf(['10.0.0.1']));
  await sim.time.settle(applier.start());
  for (let round = 0; round < 1000; round += 1) {
    if (kernel.elements('svc4').size > 0) kernel.apply('flush map inet portolan svc4\n');
    applier.foreignChange({ pid: 7, line: 'delete element inet portolan svc4' });
    await sim.time.advance(10);
  }
  await sim.time.advance(2000);
  expect(scripts.length).toBeLessThan(15);
  expect(backends()).toEqual(['10.0.0.1 . 8080']);
  expect(applier.status().foreignChanges).toBe(1000);
});

function start() {
  const sim = new Simulation({ seed: 1 });
  const kernel = new KernelModel();
  const scripts: string[] = [];
  let failures = { text: '', left: 0 };
  const nft: Nft = {
    apply: async (script) => {
      scripts.push(script);
      if (failures.left > 0) {
        failures.left -= 1;
        throw new Error(failures.text);
      }
      kernel.apply(script);
    },
    list: async () => '{"nftables":[]}',
    close: async () => {},
  };
  const state = new ProxyState(viewOf({ ...emptyViewInput, ranges, cluster: 'east' }));
  const world = sim.world('node');
  const applier = new NftApplier({ world, log: silentLog, state, nft, table: { ranges }, onGone: () => {} });
  return {
    sim,
    state,
    applier,
    kernel,
    scripts,
    fail: (text: string, left: number) => {
      failures = { text, left };
    },
    backends: () => {
      const way = kernel.way({ ip: '243.0.0.1', protocol: 'tcp', port: 80 });
      return way.kind === 'backends' ? [...way.shares.keys()].sort() : way.kind;
    },
  };
}

function importOf(): ServiceImport {
  return {
    metadata: { name: 'a', namespace: 'shop' },
    spec: { type: 'ClusterSetIP', ips: ['243.0.0.1'], ports: [{ name: 'http', port: 80 }] },
  } as ServiceImport;
}

function sliceOf(addresses: readonly string[]): EndpointSlice {
  const labels = {
    'multicluster.kubernetes.io/service-name': 'a',
    'multicluster.kubernetes.io/source-cluster': 'west',
  };
  return {
    metadata: { name: 'a-1', namespace: 'shop', labels },
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints: addresses.map((address) => ({ addresses: [address] })),
  } as unknown as EndpointSlice;
}
