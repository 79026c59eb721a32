import { expect, test } from 'vitest';
import type { Variant } from '../resource.ts';
import { testCluster, testEndpoints, testListener, testVirtualHost } from '../testing/resources.ts';
import { Talk, type Verdict } from '../testing/talk.ts';
import type { ServerResponse } from './messages.ts';

/** The same sequence for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A proxy that refuses what is bad, answers late, reconnects; what it holds is kept here from the responses alone. */
function run(variant: Variant, seed: number): void {
  const random = randomOf(seed);
  const pick = (count: number) => Math.floor(random() * count);
  const talk = new Talk(variant);
  const held = new Map<string, string>();
  const refused = new Map<string, number>();
  const wasSent = new Map<string, number>();
  const take = (response: ServerResponse): Verdict => {
    for (const { type, name, version } of response.entries) {
      const key = `${type}:${name}:${version}`;
      if (variant === 'delta') wasSent.set(key, (wasSent.get(key) ?? 0) + 1);
    }
    const bad = response.entries.filter(({ any }) => Buffer.from(any).includes('bad'));
    if (bad.length > 0) {
      for (const { type, name, version } of bad) {
        const key = `${type}:${name}:${version}`;
        refused.set(key, (refused.get(key) ?? 0) + 1);
      }
      return { nack: 'bad' };
    }
    if (variant === 'sotw' && response.type !== 'endpoints') {
      for (const key of [...held.keys()]) if (key.startsWith(`${response.type}:`)) held.delete(key);
    }
    for (const { type, name, version } of response.entries) held.set(`${type}:${name}`, version);
    for (const name of response.removed) held.delete(`${response.type}:${name}`);
    return 'ack';
  };
  // In the order of arrival, like any proxy.
  const judge = (response: ServerResponse): Verdict =>
    talk.unanswered.length > 0 || random() < 0.3 ? 'silent' : take(response);
  talk.judge = judge;
  const answerAll = () => {
    while (talk.unanswered.length > 0) talk.answer(take(talk.unanswered[0]!));
  };
  // Like an Envoy: clusters first, then the endpoints of those it holds.
  const ask = () => {
    const names = [...held.keys()]
      .filter((key) => key.startsWith('cluster:'))
      .map((key) => key.slice('cluster:'.length));
    talk.ask('cluster');
    if (names.length > 0) talk.ask('endpoints', ...names);
    talk.ask('listener');
    if (variant === 'delta') talk.ask('virtual-host');
  };
  ask();
  for (let step = 0; step < 60; step++) {
    const name = `s${pick(5)}`;
    const kind = random();
    if (kind < 0.15) talk.put(name);
    else if (kind < 0.22) {
      answerAll();
      talk.reconnect();
      ask();
    } else {
      const isBad = random() < 0.2;
      const version = isBad ? `bad${pick(3)}` : `v${pick(4)}`;
      talk.put(
        name,
        testCluster(name, `${1 + pick(3)}s`),
        testEndpoints(name, `10.0.0.${pick(9)}`),
        testListener(`l-${name}`, version),
        testVirtualHost(name, version),
      );
    }
    if (talk.unanswered.length > 0 && random() < 0.5) talk.answer(take(talk.unanswered[0]!));
    else talk.flush();
  }
  talk.flush();
  answerAll();
  for (const type of variant === 'delta'
    ? (['cluster', 'listener', 'virtual-host'] as const)
    : (['cluster', 'listener'] as const)) {
    const wanted = [...talk.set.entries(type)].filter(({ any }) => !Buffer.from(any).includes('bad'));
    for (const { name, version } of wanted) expect(held.get(`${type}:${name}`), `${type} ${name}`).toBe(version);
    // While a listener is refused, a cluster that its old form may use stays.
    if (type === 'cluster' && [...talk.refusals.keys()].some((key) => key.startsWith('listener:'))) continue;
    const known = new Set([...talk.set.entries(type)].map(({ name }) => name));
    for (const key of held.keys()) {
      if (key.startsWith(`${type}:`)) expect(known.has(key.slice(type.length + 1)), `${key} is gone`).toBe(true);
    }
  }
  for (const { name, version } of talk.set.entries('endpoints')) {
    if (held.has(`cluster:${name}`)) expect(held.get(`endpoints:${name}`), `endpoints ${name}`).toBe(version);
  }
}

test.each(['delta', 'sotw'] as const)(
  '%s: any changes, refusals, late answers, reconnects -> the proxy has the newest good version of everything',
  (variant) => {
    for (let seed = 1; seed <= 300; seed++) {
      try {
        run(variant, seed);
      } catch (error) {
        throw new Error(`seed ${seed}`, { cause: error });
      }
    }
  },
  120_000,
);
