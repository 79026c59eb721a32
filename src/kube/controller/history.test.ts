// A home that was put back to an older copy, and may have written since, so that its revisions stand for something else.

import { expect, test } from 'vitest';
import { leaseType } from '../objects/lease.ts';
import { ScriptedHome, status } from '../testing/scripted-home.ts';
import { renew, server, start, synced, type } from '../testing/watched-home.ts';

test('history: the home is put back to an earlier state -> list again, what it no longer has is told as deleted', async () => {
  const { sim, home, informer, told } = await synced(['a', 'b']);
  told.length = 0;
  home.intercept = (url) =>
    url.searchParams.has('watch') && Number(url.searchParams.get('resourceVersion')) > home.revision
      ? status(504, 'Timeout', 'too large', [{ reason: 'ResourceVersionTooLarge' }])
      : undefined;
  home.putBack(11);
  home.endWatches();
  await sim.time.advance(10_000);
  expect(told).toEqual(['shop/b: 0 -> -']);
  home.put('c', { spin: 3 });
  await sim.time.until(() => informer.get('shop/c') !== undefined, { withinMs: 10_000 });
});

test('history: the home is put back, then writes past our revision -> what it never had is told as deleted', async () => {
  const { sim, home, informer, told } = await synced(['a']);
  home.put('ghost', { spin: 1 });
  await sim.time.advance(100);
  told.length = 0;
  sim.network.setLink('agent', server, 'refused');
  sim.network.breakStreams({ server });
  home.putBack(11);
  for (const spin of [1, 2, 3]) home.put('b', { spin });
  sim.network.setLink('agent', server, 'up');
  await sim.time.until(() => informer.get('shop/b')?.spin === 3, { withinMs: 60_000 });
  expect(told).toEqual(['shop/b: - -> 3', 'shop/ghost: 1 -> -']);
});

test('history: the home is put back and forgets a delete -> what came back is told, though our last look found nothing', async () => {
  const { sim, home, informer } = await synced(['a', 'b']);
  const before = home.revision;
  home.delete('a');
  await sim.time.advance(100);
  sim.network.setLink('agent', server, 'refused');
  sim.network.breakStreams({ server });
  home.putBack(before);
  for (const spin of [1, 2, 3]) home.put('b', { spin });
  sim.network.setLink('agent', server, 'up');
  await sim.time.until(() => informer.get('shop/a') !== undefined, { withinMs: 60_000 });
});

test('history: another history has the same revisions -> what they stand for now is told, the same is not', async () => {
  const { sim, informer, told } = await cutOffWhileRevisionsRepeat();
  sim.network.setLink('agent', server, 'up');
  await sim.time.until(() => informer.get('shop/b')?.spin === 2, { withinMs: 60_000 });
  expect(told).toEqual(['shop/b: 1 -> 2']);
});

test('history: another history has the same revisions, and its first list fails -> what they stand for now is told', async () => {
  const { sim, home, informer, told } = await cutOffWhileRevisionsRepeat();
  let lists = 0;
  home.intercept = (url) =>
    url.searchParams.has('limit') && lists++ === 0 ? status(500, 'InternalError', 'made to fail') : undefined;
  sim.network.setLink('agent', server, 'up');
  await sim.time.advance(60_000);
  expect([lists > 1, told, informer.get('shop/b')?.spin]).toEqual([true, ['shop/b: 1 -> 2'], 2]);
});

test('history: put back to a copy behind the last object, then written past our revision -> what came in between is told', async () => {
  const { sim, home, told } = await idle();
  home.putBack(12);
  writePast(home);
  sim.network.setLink('agent', server, 'up');
  await sim.time.advance(60_000);
  expect(told).toEqual(['shop/b: - -> 2']);
});

test('history: put back to a copy without any object, then written past our revision -> what came in between is told', async () => {
  const { sim, home, told } = await idle({ names: [] });
  home.putBack(11);
  writePast(home);
  sim.network.setLink('agent', server, 'up');
  await sim.time.advance(60_000);
  expect(told).toEqual(['shop/b: - -> 2']);
});

test('history: back after a break, with no lease of ours, and nothing has happened since the list -> listed again', async () => {
  const { sim, home, told } = await idle();
  sim.network.setLink('agent', server, 'up');
  await sim.time.advance(60_000);
  expect([home.count('list'), told]).toEqual([2, []]);
});

test('history: the same with a lease that was renewed since -> watched from there, not listed again', async () => {
  const { sim, home, told } = await idle({ hasLease: true });
  home.floor = 12;
  sim.network.setLink('agent', server, 'up');
  await sim.time.advance(60_000);
  expect([home.count('list'), told, home.watchers]).toEqual([1, [], 1]);
  home.put('c');
  await sim.time.advance(100);
  expect(told).toEqual(['shop/c: - -> 0']);
});

test('history: put back to a copy behind our lease -> what came in between is told, and nothing is listed', async () => {
  const { sim, home, told } = await idle({ hasLease: true });
  home.floor = 12;
  home.putBack(12);
  writePast(home);
  sim.network.setLink('agent', server, 'up');
  await sim.time.advance(60_000);
  expect([home.count('list'), told]).toEqual([1, ['shop/b: - -> 2']]);
});

test('history: a lease that was renewed on and on while the watch was away -> shows as much', async () => {
  const { sim, home, client, told } = await idle({ hasLease: true });
  home.floor = 12;
  sim.network.setLink('agent', server, 'up');
  for (const revision of ['12', '15']) {
    void renew(client, revision);
    await sim.time.advance(100);
  }
  await sim.time.advance(60_000);
  expect([home.revision, home.count('list'), told]).toEqual([16, 1, []]);
});

test('history: put back to a copy before our lease, which was then written anew -> shows nothing, listed again', async () => {
  const { sim, home, client, told } = await idle({ hasLease: true });
  home.floor = 12;
  home.putBack(11);
  home.put('b', { spin: 2 });
  sim.network.setLink('agent', server, 'up');
  void renew(client);
  await sim.time.advance(100);
  while (home.revision < 20) home.bookmark();
  await sim.time.advance(60_000);
  expect([home.count('list'), told]).toEqual([2, ['shop/b: - -> 2']]);
});

test('history: put back to a copy before the last object, but behind our lease, which was renewed since -> what came in between is told', async () => {
  const { sim, home, client, told } = await idle({ hasLease: true });
  sim.network.setLink('agent', server, 'up');
  await sim.time.advance(60_000);
  home.put('c');
  await sim.time.advance(100);
  sim.network.setLink('agent', server, 'refused');
  sim.network.breakStreams({ server });
  home.putBack(14);
  home.put('b', { spin: 2 });
  sim.network.setLink('agent', server, 'up');
  void renew(client, '12');
  await sim.time.advance(60_000);
  expect([home.revision, told]).toEqual([16, ['shop/c: - -> 0', 'shop/b: - -> 2', 'shop/c: 0 -> -']]);
});

test('history: a home that does not let us read our lease -> listed again', async () => {
  const { sim, home, told } = await idle({ hasLease: true });
  home.intercept = (url) => (url.pathname.includes('/leases/') ? status(403, 'Forbidden', 'not you') : undefined);
  home.putBack(11);
  writePast(home);
  sim.network.setLink('agent', server, 'up');
  await sim.time.advance(60_000);
  expect(told).toEqual(['shop/b: - -> 2']);
});

test('history: put back to a copy behind the last object of the list, but before a delete that the list had seen -> what came back is told', async () => {
  const { sim, home, told } = await listedAfterDelete();
  sim.network.setLink('agent', server, 'refused');
  sim.network.breakStreams({ server });
  home.putBack(12);
  while (home.revision < 20) home.bookmark();
  sim.network.setLink('agent', server, 'up');
  await sim.time.advance(60_000);
  expect(told).toEqual(['shop/d: - -> 0']);
});

test('history: the same with a lease that is older than the delete -> shows too little', async () => {
  const { sim, home, client, informer, told } = await synced(['d', 'a']);
  void renew(client);
  await sim.time.advance(100);
  home.delete('d');
  await sim.time.advance(100);
  informer.relist();
  await sim.time.until(() => home.count('list') === 2 && home.watchers === 1, { withinMs: 1000 });
  told.length = 0;
  sim.network.setLink('agent', server, 'refused');
  sim.network.breakStreams({ server });
  home.putBack(13);
  while (home.revision < 20) home.bookmark();
  sim.network.setLink('agent', server, 'up');
  await sim.time.advance(60_000);
  expect([home.lease?.metadata.resourceVersion, told]).toEqual(['13', ['shop/d: - -> 0']]);
});

test('history: an object was written and deleted before the list -> a watch that breaks does not bring it back', async () => {
  const { sim, home, told } = await listedAfterDelete({ isNewest: true });
  sim.network.breakStreams({ server });
  await sim.time.advance(60_000);
  expect([told, home.watchers]).toEqual([[], 1]);
});

test('history: a home that lists but refuses watches for a while -> not listed again and again', async () => {
  const home = new ScriptedHome(type);
  home.put('a');
  home.bookmark();
  home.intercept = (url) => (url.searchParams.has('watch') ? status(429, 'TooManyRequests', 'later') : undefined);
  const { sim, told } = start(home);
  await sim.time.advance(120_000);
  home.intercept = () => undefined;
  home.put('b');
  await sim.time.advance(30_000);
  expect([home.count('list'), told]).toEqual([1, ['shop/a: - -> 0', 'shop/b: - -> 0']]);
});

test('history: a watch is found ended long after its time, as by a process that was stopped -> what came in between is told', async () => {
  const { sim, home, told } = await synced(['a']);
  const seconds = Number(/timeoutSeconds=(\d+)/.exec(home.requests.at(-1)!)![1]);
  await sim.time.advance(seconds * 1000 + 20_000);
  while (home.revision < 14) home.bookmark();
  await sim.time.advance(100);
  told.length = 0;
  home.endWatches();
  home.putBack(12);
  writePast(home);
  await sim.time.advance(60_000);
  expect(told).toEqual(['shop/b: - -> 2']);
});

test('history: put back, and a renewal without answer gets the revision of our last one -> shows nothing', async () => {
  const { sim, home, client, told } = await synced(['a']);
  home.bookmark();
  void renew(client);
  await sim.time.advance(100);
  home.bookmark();
  await sim.time.advance(100);
  told.length = 0;
  sim.network.setLink('agent', server, 'refused');
  sim.network.breakStreams({ server });
  const lease = home.lease!;
  home.putBack(11);
  home.put('b', { spin: 2 });
  home.revision = 13;
  home.lease = { ...lease, metadata: { ...lease.metadata, labels: { renewed: 'later' } } };
  sim.network.setLink('agent', server, 'up');
  void client.get(leaseType, { name: 'own', namespace: 'x' }).then(() => void renew(client, '13'));
  await sim.time.advance(60_000);
  expect([lease.metadata.resourceVersion, home.revision, told]).toEqual(['13', 14, ['shop/b: - -> 2']]);
});

/** A list of revision 13, in which `a` is and `d` no longer. */
async function listedAfterDelete({ isNewest = false } = {}) {
  const home = new ScriptedHome(type);
  for (const name of isNewest ? ['a', 'd'] : ['d', 'a']) home.put(name);
  home.delete('d');
  const started = start(home);
  await started.sim.time.until(() => started.informer.status().state.kind === 'watching', { withinMs: 1000 });
  started.told.length = 0;
  return started;
}

/** Cut off with one object, of revision 11, a copy that is known up to 14, and perhaps a lease of 12. */
async function idle({ names = ['a'], hasLease = false } = {}) {
  const started = await synced(names);
  const { sim, home, client, told } = started;
  if (hasLease) void renew(client);
  await sim.time.advance(100);
  while (home.revision < 14) home.bookmark();
  await sim.time.advance(100);
  told.length = 0;
  sim.network.setLink('agent', server, 'refused');
  sim.network.breakStreams({ server });
  await sim.time.advance(1_000);
  return started;
}

/** Something we should hear of, and then as many revisions that we do not care for. */
function writePast(home: ScriptedHome): void {
  home.put('b', { spin: 2 });
  while (home.revision < 20) home.bookmark();
}

/** Cut off from a home that was put back, and that has given the revision of `b` to another content of it. */
async function cutOffWhileRevisionsRepeat() {
  const started = await synced(['a']);
  const { sim, home, told } = started;
  home.put('b', { spin: 1 });
  await sim.time.advance(100);
  told.length = 0;
  sim.network.setLink('agent', server, 'refused');
  sim.network.breakStreams({ server });
  const { uid } = home.objects.get('b')!.metadata;
  home.putBack(11);
  home.put('b', { spin: 2 });
  home.objects.get('b')!.metadata.uid = uid;
  return started;
}
