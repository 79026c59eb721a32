import { describe, expect, test } from 'vitest';
import { LeaseMonitor } from './lease-monitor.ts';

const times = { leaseMs: 30_000, renewalGapMsMax: 20_000, holdDownMs: 60_000, holdDownMsMax: 600_000, calmMs: 600_000 };

// Ours renews every 10 s; the other's lease changes in those steps in which it is alive.
class Scene {
  readonly monitor = new LeaseMonitor(() => times);
  nowMs = 0;
  #token = 0;

  step(options: { theirs: boolean; ours?: boolean; homeAway?: boolean }, steps = 1): this {
    for (let count = 0; count < steps; count += 1) {
      this.nowMs += 10_000;
      if (options.theirs) this.#token += 1;
      if (options.ours === false) {
        this.monitor.ownRenewalFailed();
        continue;
      }
      const homeAwaySince = options.homeAway ? '2026-01-01T00:00:00Z' : undefined;
      this.monitor.seen({ cluster: 'west', token: String(this.#token), nowMs: this.nowMs, homeAwaySince });
      this.monitor.ownRenewed(this.nowMs);
      for (const suspect of this.monitor.suspects()) this.monitor.condemn(suspect);
    }
    return this;
  }

  get verdict(): string {
    return this.monitor.verdict('west');
  }
}

describe('lease monitor', () => {
  test('lease monitor: never seen -> alive', () => expect(new LeaseMonitor(() => times).verdict('west')).toBe('alive'));

  test('lease monitor: renewed -> alive for as long as it is', () => {
    expect(new Scene().step({ theirs: true }, 100).verdict).toBe('alive');
  });

  test('lease monitor: unchanged for 30 s while we renew -> stale, not before [003-68]', () => {
    const scene = new Scene().step({ theirs: true }, 2);
    expect(scene.step({ theirs: false }, 2).verdict).toBe('alive');
    expect(scene.step({ theirs: false }, 1).verdict).toBe('stale');
  });

  test('lease monitor: broker away for an hour -> clocks stand still, nobody is condemned', () => {
    const scene = new Scene().step({ theirs: true }, 2).step({ theirs: false, ours: false }, 360);
    expect(scene.verdict).toBe('alive');
    expect(scene.step({ theirs: false }, 2).verdict).toBe('alive');
    expect(scene.step({ theirs: false }, 2).verdict).toBe('stale');
  });

  test('lease monitor: every other renewal of ours fails -> the time around a failure does not count', () => {
    const scene = new Scene().step({ theirs: true }, 2);
    for (let round = 0; round < 20; round += 1) scene.step({ theirs: false, ours: false }).step({ theirs: false });
    expect(scene.verdict).toBe('alive');
  });

  test('lease monitor: we slept between two renewals -> the gap does not count', () => {
    const scene = new Scene().step({ theirs: true }, 2);
    scene.nowMs += 3_600_000;
    expect(scene.step({ theirs: false }, 1).verdict).toBe('alive');
  });

  test('lease monitor: comes back the first time -> trusted at once', () => {
    const scene = new Scene().step({ theirs: true }, 2).step({ theirs: false }, 4);
    expect(scene.verdict).toBe('stale');
    expect(scene.step({ theirs: true }).verdict).toBe('alive');
  });

  test('lease monitor: flaps -> held down for a minute, then for two', () => {
    const scene = new Scene().step({ theirs: true }, 2);
    scene.step({ theirs: false }, 4).step({ theirs: true }, 1).step({ theirs: false }, 4);
    expect(scene.step({ theirs: true }, 6).verdict).toBe('stale');
    expect(scene.step({ theirs: true }, 1).verdict).toBe('alive');
    scene.step({ theirs: false }, 4);
    expect(scene.step({ theirs: true }, 12).verdict).toBe('stale');
    expect(scene.step({ theirs: true }, 1).verdict).toBe('alive');
  });

  test('lease monitor: goes again while held down -> the hold-down starts over, longer', () => {
    const scene = new Scene().step({ theirs: true }, 2);
    scene.step({ theirs: false }, 4).step({ theirs: true }, 1).step({ theirs: false }, 4);
    scene.step({ theirs: true }, 3).step({ theirs: false }, 4);
    expect(scene.step({ theirs: true }, 11).verdict).toBe('stale');
    expect(scene.step({ theirs: true }, 3).verdict).toBe('alive');
  });

  test('lease monitor: a long calm -> earlier breaks are forgotten', () => {
    const scene = new Scene().step({ theirs: true }, 2);
    scene.step({ theirs: false }, 4).step({ theirs: true }, 1).step({ theirs: false }, 4).step({ theirs: true }, 100);
    scene.step({ theirs: false }, 4);
    expect(scene.step({ theirs: true }).verdict).toBe('alive');
  });

  test('lease monitor: alive again -> the break is remembered for the whole time of calm, and no longer', () => {
    const scene = new Scene().step({ theirs: true }, 2).step({ theirs: false }, 4).step({ theirs: true }, 59);
    expect(scene.monitor.record('west')!.returns).toBe(1);
    expect(scene.step({ theirs: true }, 1).monitor.record('west')!.returns).toBe(0);
  });

  test('lease monitor: restarted while a member is dead -> still dead; renewed in between -> alive', () => {
    const scene = new Scene().step({ theirs: true }, 2).step({ theirs: false }, 4);
    const west = scene.monitor.record('west')!;
    const restarted = new LeaseMonitor(() => times);
    restarted.recall('west', west);
    restarted.seen({ cluster: 'west', token: west.token, nowMs: 0 });
    expect(restarted.verdict('west')).toBe('stale');
    const later = new LeaseMonitor(() => times);
    later.recall('west', west);
    later.seen({ cluster: 'west', token: 'renewed', nowMs: 0 });
    expect(later.verdict('west')).toBe('alive');
  });

  test('lease monitor: restarted while a member is held down -> the rest of the hold-down is held', () => {
    const scene = new Scene().step({ theirs: true }, 2);
    scene.step({ theirs: false }, 4).step({ theirs: true }, 1).step({ theirs: false }, 4).step({ theirs: true }, 3);
    const restarted = new Scene();
    restarted.monitor.recall('west', scene.monitor.record('west')!);
    expect(restarted.step({ theirs: true }, 4).verdict).toBe('stale');
    expect(restarted.step({ theirs: true }, 1).verdict).toBe('alive');
  });

  test('lease monitor: restarted after a member came back -> coming back once more is the second time', () => {
    const scene = new Scene().step({ theirs: true }, 2).step({ theirs: false }, 4).step({ theirs: true }, 1);
    const restarted = new Scene();
    restarted.monitor.recall('west', scene.monitor.record('west')!);
    expect(restarted.step({ theirs: true }, 2).step({ theirs: false }, 4).verdict).toBe('stale');
    expect(restarted.step({ theirs: true }, 1).verdict).toBe('stale');
  });

  test('lease monitor: the lease of a stale member is deleted -> no sign of life', () => {
    const scene = new Scene().step({ theirs: true }, 2).step({ theirs: false }, 4);
    scene.monitor.seen({ cluster: 'west', token: undefined, nowMs: scene.nowMs });
    expect(scene.verdict).toBe('stale');
    expect(scene.step({ theirs: true }).verdict).toBe('alive');
  });

  test('lease monitor: the first sight is of a lease that has not changed for 20 s -> stale 10 s later', () => {
    const scene = new Scene();
    scene.monitor.ownRenewed(0);
    scene.monitor.seen({ cluster: 'west', token: '0', nowMs: 0, unchangedMs: 20_000 });
    expect(scene.verdict).toBe('alive');
    expect(scene.step({ theirs: false }).verdict).toBe('stale');
  });

  test('lease monitor: seen to change just before it is condemned -> spared', () => {
    const scene = new Scene().step({ theirs: true }, 2).step({ theirs: false }, 2);
    scene.monitor.ownRenewed(scene.nowMs + 10_000);
    expect(scene.monitor.suspects()).toEqual(['west']);
    scene.monitor.seen({ cluster: 'west', token: 'fresh', nowMs: scene.nowMs + 10_000 });
    scene.monitor.condemn('west');
    expect(scene.verdict).toBe('alive');
  });

  test('lease monitor: read now and then -> what is proven to be unchanged counts at each sight, and never makes it younger', () => {
    const sight = { cluster: 'west', token: '1', isRead: true };
    const scene = new Scene();
    scene.monitor.ownRenewed(0);
    scene.monitor.seen({ ...sight, nowMs: 0 });
    scene.monitor.seen({ ...sight, nowMs: 10_000, unchangedMs: 25_000 });
    scene.monitor.seen({ ...sight, nowMs: 10_000, unchangedMs: 1_000 });
    scene.monitor.ownRenewed(10_000);
    expect(scene.monitor.silentFor(25_000)).toEqual(['west']);
    expect(scene.monitor.silentFor(25_001)).toEqual([]);
    scene.monitor.seen({ ...sight, token: '2', nowMs: 10_000, unchangedMs: 20_000 });
    expect(scene.monitor.silentFor(20_000)).toEqual(['west']);
    expect(scene.monitor.silentFor(20_001)).toEqual([]);
  });

  test('lease monitor: watched -> how long it was unchanged counts at the first sight alone', () => {
    const scene = new Scene();
    scene.monitor.ownRenewed(0);
    for (const token of ['1', '1', '2'])
      scene.monitor.seen({ cluster: 'west', token, nowMs: 0, unchangedMs: token === '1' ? 5_000 : 50_000 });
    expect(scene.monitor.silentFor(0)).toEqual(['west']);
    expect(scene.monitor.silentFor(1)).toEqual([]);
  });

  test('lease monitor: vouched for by an observer -> as good as a change, but not for one that is stale', () => {
    const scene = new Scene().step({ theirs: true }, 2).step({ theirs: false }, 2);
    scene.monitor.vouched('west', scene.nowMs);
    expect(scene.step({ theirs: false }, 2).verdict).toBe('alive');
    expect(scene.step({ theirs: false }, 1).verdict).toBe('stale');
    scene.monitor.vouched('west', scene.nowMs);
    expect(scene.verdict).toBe('stale');
    scene.monitor.vouched('north', scene.nowMs);
    expect(scene.monitor.record('north')).toEqual({
      verdict: 'alive',
      returns: 0,
      token: undefined,
      heldMs: undefined,
    });
  });

  test('lease monitor: forgotten -> as one that was never seen', () => {
    const scene = new Scene().step({ theirs: true }, 2).step({ theirs: false }, 4);
    scene.monitor.forget('west');
    expect(scene.monitor.record('west')).toBeUndefined();
    expect(scene.verdict).toBe('alive');
  });

  test('lease monitor: renewed, its home away -> stale after the lease time, for as long as that lasts; back -> alive', () => {
    const scene = new Scene().step({ theirs: true }, 2);
    expect(scene.step({ theirs: true, homeAway: true }, 2).verdict).toBe('alive');
    expect(scene.step({ theirs: true, homeAway: true }, 1).verdict).toBe('stale');
    expect(scene.step({ theirs: true, homeAway: true }, 100).verdict).toBe('stale');
    expect(scene.monitor.record('west')?.homeAwaySince).toBe('2026-01-01T00:00:00Z');
    expect(scene.step({ theirs: true }).verdict).toBe('alive');
    expect(scene.monitor.record('west')?.homeAwaySince).toBeUndefined();
  });

  test('lease monitor: its home away for less than the lease time -> alive throughout', () => {
    const scene = new Scene().step({ theirs: true }, 2);
    expect(scene.step({ theirs: true, homeAway: true }, 2).step({ theirs: true }, 2).verdict).toBe('alive');
  });

  test('lease monitor: first seen while its home is away, and that for long by our renewals -> stale at once', () => {
    const monitor = new LeaseMonitor(() => times);
    monitor.ownRenewed(0);
    const away = { homeAwaySince: '2026-01-01T00:00:00Z', unchangedMs: 31_000, isRead: true };
    monitor.seen({ cluster: 'west', token: '9', nowMs: 0, ...away });
    monitor.condemn('west');
    expect(monitor.verdict('west')).toBe('stale');
  });
});
