// Random histories: a home that is written, cut off, put back to an older copy and written past what we know, with and without a
// lease of ours. In the end the copy is what the home has.

import { expect, test } from 'vitest';
import { seededRandom } from '../../../sim/virtual-world.ts';
import { apply, replaceWith } from '../client/apply.ts';
import type { Client } from '../client/client.ts';
import { type Lease, leaseType } from '../objects/lease.ts';
import { ScriptedHome, status } from '../testing/scripted-home.ts';
import { server, start, type } from '../testing/watched-home.ts';

test('histories: whatever happens to a home -> the copy is what it has in the end', async () => {
  const wrong: string[] = [];
  for (let seed = 1000; seed < 1400; seed += 1) {
    const { had, has } = await history(seed);
    if (had.join() !== has.join()) wrong.push(`seed ${seed}: the copy has ${had.join(' ')}, the home ${has.join(' ')}`);
  }
  expect(wrong).toEqual([]);
});

async function history(seed: number) {
  const random = seededRandom(seed);
  const below = (bound: number) => Math.floor(random() * bound);
  const [home, hasLease] = [new ScriptedHome(type), random() < 0.7];
  let isAnswerLost = false;
  home.intercept = ({ searchParams, pathname }, request) => {
    if (searchParams.has('watch') && Number(searchParams.get('resourceVersion')) > home.revision)
      return status(504, 'Timeout', 'too large', [{ reason: 'ResourceVersionTooLarge' }]);
    if (!isAnswerLost || request.method !== 'PUT' || !pathname.includes('/leases')) return undefined;
    isAnswerLost = false;
    void home.handle(request);
    return status(500, 'InternalError', 'the answer is lost');
  };
  /** Strides of many revisions: no two histories delete the same object at the same one. */
  const write = () => {
    const name = `o${below(4)}`;
    const kind = random();
    if (kind < 0.5) home.put(name, { spin: below(1e6) });
    if (kind > 0.25) home.revision += below(40);
    if (kind > 0.5 && kind < 0.8) home.delete(name);
  };
  for (let writes = below(8); writes > 0; writes -= 1) write();
  const { sim, client, informer } = start(home);
  const renew = renewing(client);
  const cutOff = async () => {
    sim.network.setLink('agent', server, 'refused');
    sim.network.breakStreams({ server });
    await sim.time.advance(300 + below(3000));
    if (random() < 0.6) home.putBack(Math.max(10, home.revision - below(60)));
    home.floor = Math.min(home.floor, home.revision);
    for (let writes = below(8); writes > 0; writes -= 1) write();
    sim.network.setLink('agent', server, 'up');
    isAnswerLost = random() < 0.2;
    if (hasLease && random() < 0.5) renew();
  };
  const steps: [share: number, () => unknown][] = [
    [0.35, write],
    [0.1, () => home.bookmark()],
    [0.1, () => hasLease && renew()],
    [0.1, () => (random() < 0.5 ? home.endWatches() : sim.network.breakStreams({ server }))],
    [0.02, () => informer.relist()],
    [0.02, () => (home.floor = Math.max(home.floor, home.revision - below(40)))],
    [0.15, cutOff],
    [0.16, () => sim.time.advance(below(random() < 0.2 ? 30_000 : 300))],
  ];
  for (let step = 0; step < 40; step += 1) {
    let rest = random();
    await steps.find(([share]) => (rest -= share) < 0)?.[1]();
    if (random() < 0.7) await sim.time.advance(below(50));
  }
  await sim.time.advance(200_000);
  informer.stop();
  return { had: namesIn(informer.values()), has: namesIn(home.objects.values()) };
}

function namesIn(tops: Iterable<{ readonly metadata: { name: string; resourceVersion?: string } }>): string[] {
  return Array.from(tops, ({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`).sort();
}

/** As parts do it: they know what they wrote last, unless that got no answer. */
function renewing(client: Client): () => void {
  let held: Lease | undefined;
  let count = 0;
  return () => {
    const present = held;
    held = undefined;
    const metadata = { name: 'own', namespace: 'x' };
    const spec = { renewTime: `renewal ${++count}` };
    const change = replaceWith<Lease>({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec });
    apply<Lease>({ client, type: leaseType, change, present, onConflict: 'retry' }).then(
      ({ object }) => (held = object),
      () => {},
    );
  };
}
