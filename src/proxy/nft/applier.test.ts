// Redirects that change while the proxy runs.

import { expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { parseRange } from '../../base/ip.ts';
import { silentLog } from '../../base/log.ts';
import { ProxyState } from '../state.ts';
import { emptyViewInput, viewOf } from '../view.ts';
import { NftApplier } from './applier.ts';
import type { Nft } from './edge/nft.ts';

const redirect = (cidr: string, toPort: number) => ({
  range: parseRange(cidr)!,
  protocol: 'tcp' as const,
  port: 80,
  toPort,
});

test('applier: redirects change -> only the difference is written, in one transaction; the same again -> nothing', async () => {
  const simulation = new Simulation({ seed: 1 });
  const scripts: string[] = [];
  const nft = {
    list: async () => '{"nftables":[]}',
    apply: async (script: string) => void scripts.push(script),
  } as unknown as Nft;
  const applier = new NftApplier({
    ...{ world: simulation.world('proxy'), log: silentLog, nft, onGoneUdp: () => {} },
    state: new ProxyState({ ranges: [], view: viewOf(emptyViewInput) }),
    table: { ranges: [] },
    redirects: [redirect('242.0.0.1', 15_001)],
  });
  await applier.start();
  expect(scripts).toHaveLength(1);
  expect(scripts[0]).toContain('242.0.0.1 . 80');
  applier.setRedirects([redirect('242.0.0.1', 15_001), redirect('242.0.0.2', 15_002)]);
  await applier.settled();
  expect(scripts).toHaveLength(2);
  expect(scripts[1]).toContain('242.0.0.2 . 80');
  expect(scripts[1]).not.toContain('242.0.0.1');
  applier.setRedirects([redirect('242.0.0.2', 15_002), redirect('242.0.0.1', 15_001)]);
  await applier.settled();
  expect(scripts).toHaveLength(2);
  await applier.stop();
});
