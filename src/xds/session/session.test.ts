import { describe, expect, test } from 'vitest';
import type { Variant } from '../resource.ts';
import { testCluster, testEndpoints, testListener, testVirtualHost } from '../testing/resources.ts';
import { Talk, type Verdict } from '../testing/talk.ts';
import type { ServerResponse } from './messages.ts';

const variants: readonly Variant[] = ['delta', 'sotw'];

function shop(talk: Talk): Talk {
  return talk.put('a', testCluster('a'), testEndpoints('a', '10.0.0.1'), testListener('la', 'a'));
}

describe.each(variants)('%s: first configuration', (variant) => {
  test('clusters, then their endpoints unasked, then listeners; asking for endpoints already sent -> nothing', () => {
    const talk = shop(new Talk(variant)).ask('cluster').ask('endpoints', 'a').ask('listener');
    expect(talk.said()).toEqual([
      '> cluster (all)',
      '< cluster a',
      '< endpoints a',
      '> endpoints a',
      '> listener (all)',
      '< listener la',
    ]);
  });

  test('a client that is no Envoy asks for endpoints -> they are sent again', () => {
    const talk = shop(new Talk(variant, { isEnvoy: false }))
      .ask('cluster')
      .ask('endpoints', 'a');
    expect(talk.said().slice(-1)).toEqual(['< endpoints a']);
  });

  test('nothing to serve -> one empty response, so that the proxy need not wait', () => {
    expect(new Talk(variant).ask('cluster').said()).toEqual(['> cluster (all)', '< cluster (none)']);
  });

  test('by name -> only those names, and clusters asked by name bring no endpoints', () => {
    const talk = new Talk(variant).put('a', testCluster('a'), testEndpoints('a', '10.0.0.1'));
    talk.put('b', testCluster('b'));
    expect(talk.ask('cluster', 'b').ask('endpoints', 'a').said()).toEqual([
      '> cluster b',
      '< cluster b',
      '> endpoints a',
      '< endpoints a',
    ]);
    expect(talk.put('a', testCluster('a', '2s'), testEndpoints('a', '10.0.0.1')).flush().said()).toEqual([]);
  });

  test('by name, not there -> said so, and sent as soon as it is there', () => {
    const talk = new Talk(variant).ask('cluster', 'late');
    expect(talk.said()[1]).toBe(variant === 'delta' ? '< cluster -late' : '< cluster (none)');
    expect(talk.put('late', testCluster('late')).flush().said()).toEqual(['< cluster late']);
  });

  test('a resource for those who name it -> left out of what a wildcard gets', () => {
    const talk = new Talk(variant).put('a', testListener('la', 'a'));
    talk.put('api', { ...testListener('xds-only', 'a'), isByNameOnly: true });
    expect(talk.ask('listener').said()).toEqual(['> listener (all)', '< listener la']);
    const grpc = new Talk(variant).put('api', { ...testListener('xds-only', 'a'), isByNameOnly: true });
    expect(grpc.ask('listener', 'xds-only').said()).toEqual(['> listener xds-only', '< listener xds-only']);
  });
});

describe.each(variants)('%s: clusters of chains that drain', (variant) => {
  const drainMs = 600_000;
  const gone = variant === 'delta' ? '< cluster -a' : '< cluster b';
  const told = (talk: Talk) => talk.said().filter((line) => line.startsWith('<'));
  const begun = (options = {}) => {
    const talk = new Talk(variant, { drainMs, ...options })
      .put('a', testCluster('a'), testEndpoints('a', '10.0.0.1'), testListener('la', 'a'))
      .put('b', testCluster('b'), testListener('lb', 'b'));
    talk.ask('cluster').ask('listener').said();
    return talk;
  };

  test('a rule goes -> its listener at once, its cluster and endpoints when the chains of the listener are drained', () => {
    const talk = begun().put('a').flush();
    expect(told(talk)).toEqual([variant === 'delta' ? '< listener -la' : '< listener lb']);
    expect(told(talk.wait(drainMs - 1))).toEqual([]);
    expect(told(talk.wait(1))[0]).toBe(gone);
  });

  test('it comes back meanwhile, changed or not -> it is not taken away', () => {
    for (const timeout of ['1s', '9s']) {
      const talk = begun().put('a').flush();
      talk.put('a', testCluster('a', timeout), testEndpoints('a', '10.0.0.1'), testListener('la', 'a')).flush().said();
      expect(told(talk.wait(2 * drainMs))).toEqual([]);
    }
  });

  test('something else changes meanwhile -> sent as ever, and the endpoints of what is held stay', () => {
    const talk = begun().put('a').flush();
    talk.said();
    expect(told(talk.put('b', testCluster('b', '9s'), testListener('lb', 'b')).flush())).toEqual([
      variant === 'delta' ? '< cluster b' : '< cluster a b',
    ]);
  });

  test('the proxy connects again meanwhile -> its chains may still drain: held anew', () => {
    const talk = begun().put('a').flush();
    talk.reconnect().ask('cluster').ask('listener').said();
    expect(told(talk.wait(drainMs - 1))).toEqual([]);
  });

  test('a client that is no Envoy -> no chains: taken away at once', () => {
    expect(told(begun({ isEnvoy: false }).put('a').flush())).toContain(gone);
  });

  test('more of them than are held -> the oldest go first', () => {
    const talk = new Talk(variant, { drainMs }).put('b', testCluster('b'));
    for (let i = 0; i < 1030; i++) talk.put(`c${i}`, testCluster(`c${i}`));
    talk.prove().ask('cluster').ask('listener').said();
    for (let i = 0; i < 1030; i++) talk.put(`c${i}`);
    talk.flush().flush();
    const left = talk.set.entries('cluster');
    expect([...left].map(({ name }) => name)).toEqual(['b']);
    const lines = told(talk);
    expect(lines.at(-1)).toContain(variant === 'delta' ? '-c0' : 'c1029');
    if (variant === 'sotw') expect(lines.at(-1)!.split(' ')).not.toContain('c0');
  });
});

describe.each(variants)('%s: endpoints that are no longer wanted', (variant) => {
  test.each(['asked for', 'sent behind their cluster too'])('%s -> their changes are not sent any more', (how) => {
    const talk = shop(new Talk(variant));
    if (how !== 'asked for') talk.ask('cluster');
    talk.ask('endpoints', 'a').leave('endpoints', 'a').said();
    talk.put('a', testCluster('a'), testEndpoints('a', '10.0.0.2'), testListener('la', 'a')).flush();
    expect(talk.said()).toEqual([]);
    expect(talk.ask('endpoints', 'a').said()).toEqual(['> endpoints a', '< endpoints a']);
  });
});

describe.each(variants)('%s: changes', (variant) => {
  test('endpoints change -> that one resource is sent', () => {
    const talk = shop(new Talk(variant)).put('b', testCluster('b'), testEndpoints('b', '10.0.1.1'));
    talk.ask('cluster').ask('endpoints', 'a', 'b').said();
    talk.put('a', testCluster('a'), testEndpoints('a', '10.0.0.2'), testListener('la', 'a')).flush();
    expect(talk.said()).toEqual(['< endpoints a']);
  });

  test('a cluster changes -> its endpoints follow, though they are as before', () => {
    const talk = shop(new Talk(variant)).ask('cluster').ask('endpoints', 'a');
    talk.said();
    talk.put('a', testCluster('a', '9s'), testEndpoints('a', '10.0.0.1'), testListener('la', 'a')).flush();
    expect(talk.said()).toEqual(['< cluster a', '< endpoints a']);
  });

  test('the same content again -> nothing', () => {
    const talk = shop(new Talk(variant)).ask('cluster').ask('listener');
    talk.said();
    expect(shop(talk).flush().said()).toEqual([]);
  });

  test('a listener moves to another cluster -> the old one goes only when the listener is acknowledged', () => {
    const talk = shop(new Talk(variant)).ask('cluster').ask('listener').prove();
    talk.said();
    talk.judge = ({ type }) => (type === 'listener' ? 'silent' : 'ack');
    talk.put('b', testCluster('b')).put('a', testListener('la', 'b')).flush();
    const whole = variant === 'sotw';
    expect(talk.said()).toEqual([whole ? '< cluster a b' : '< cluster b', '< listener la']);
    talk.judge = () => 'ack';
    expect(talk.answer('ack').said()).toEqual([whole ? '< cluster b' : '< cluster -a']);
  });

  test('the listener is refused -> its cluster stays for as long as the old listener does', () => {
    const talk = shop(new Talk(variant)).ask('cluster').ask('listener');
    talk.said();
    talk.judge = ({ type }) => (type === 'listener' ? { nack: 'no' } : 'ack');
    talk.put('b', testCluster('b')).put('a', testListener('la', 'b')).flush();
    const lines = talk.said();
    expect(lines).toContain('  held: listener la at last good');
    expect(lines.filter((line) => line === '< cluster -a' || line === '< cluster b').length).toBe(
      variant === 'delta' ? 1 : 0,
    );
    talk.judge = () => 'ack';
    talk.put('a', { ...testListener('la', 'b'), body: { ...testListener('la', 'b').body, stat_prefix: 'new' } });
    talk.flush();
    expect(talk.said().at(-1)).toBe(variant === 'delta' ? '< cluster -a' : '< cluster b');
  });
});

describe.each(variants)('%s: refusals', (variant) => {
  const refuseBad = (response: ServerResponse): Verdict =>
    response.entries.some(({ any }) => Buffer.from(any).includes('bad')) ? { nack: 'bad' } : 'ack';

  test('one bad among ten -> nine arrive, the bad one is named and never sent again', () => {
    const talk = new Talk(variant);
    for (let i = 0; i < 9; i++) talk.put(`c${i}`, testCluster(`c${i}`));
    talk.put('bad', testCluster('bad'));
    talk.judge = refuseBad;
    talk.ask('cluster');
    expect(talk.said()).toContain('  held: cluster bad at nothing');
    expect([...talk.refusals.keys()]).toEqual(['cluster:bad']);
    talk.put('c0', testCluster('c0', '5s')).flush();
    expect(talk.said().join('\n')).not.toContain('bad');
    expect(talk.reconnect().ask('cluster').said().join('\n')).not.toContain('bad');
  });

  test('a bad version of something good -> held at the last good one; a better version -> recovered', () => {
    const talk = new Talk(variant).put('x', testListener('x', 'good')).put('y', testListener('y', 'good'));
    talk.judge = refuseBad;
    talk.ask('listener').said();
    talk.put('x', testListener('x', 'bad')).flush();
    expect(talk.said().slice(1)).toEqual(['  refused: bad', '  held: listener x at last good']);
    talk.put('y', testListener('y', 'other')).flush();
    expect(talk.said()).toEqual([variant === 'delta' ? '< listener y' : '< listener x y']);
    talk.put('x', testListener('x', 'better')).flush();
    expect(talk.said()).toEqual(['  recovered: listener x', variant === 'delta' ? '< listener x' : '< listener x y']);
  });

  test('what another proxy proved, refused together -> sent again in smaller company, at most twice', () => {
    const talk = new Talk(variant);
    for (const name of ['a', 'b', 'c', 'bad']) talk.put(name, testCluster(name));
    talk.prove();
    talk.judge = refuseBad;
    const sends = () => talk.lines.filter((line) => line.startsWith('<') && line.includes('bad')).length;
    talk.ask('cluster');
    expect(sends()).toBeLessThanOrEqual(variant === 'delta' ? 2 : 3);
    expect([...talk.refusals.keys()]).toEqual(['cluster:bad']);
  });

  test('a proxy that refuses everything -> each version at most twice', () => {
    const talk = new Talk(variant);
    for (let i = 0; i < 20; i++) talk.put(`c${i}`, testCluster(`c${i}`));
    talk.judge = () => ({ nack: 'no' });
    talk.ask('cluster').ask('cluster');
    const responses = talk.said().filter((line) => line.startsWith('<'));
    expect(responses.length).toBeLessThanOrEqual(variant === 'delta' ? 20 : 40);
    expect(talk.refusals.size).toBe(20);
    expect(talk.flush().said()).toEqual([]);
  });
});

describe.each(variants)('%s: streams', (variant) => {
  test('reconnect with the versions it has -> nothing is sent', () => {
    const talk = shop(new Talk(variant)).ask('cluster').ask('endpoints', 'a').ask('listener');
    talk.said();
    talk.reconnect().ask('cluster').ask('endpoints', 'a').ask('listener');
    expect(talk.said().filter((line) => line.startsWith('<'))).toEqual([]);
  });

  test('reconnect after a change and a removal -> only those; a cluster goes after the listener that used it', () => {
    const talk = shop(new Talk(variant)).put('b', testCluster('b'), testListener('lb', 'b'));
    talk.ask('cluster').ask('listener').prove();
    talk.said();
    talk.reconnect().put('b').put('a', testCluster('a', '7s'), testListener('la', 'a'));
    expect(talk.ask('cluster').said().slice(2)).toEqual([variant === 'delta' ? '< cluster a' : '< cluster a']);
    const lines = talk.ask('listener').said();
    if (variant === 'delta') expect(lines.slice(1)).toEqual(['< listener -lb', '< cluster -b']);
  });

  test('a nonce that is not in flight -> ignored', () => {
    const talk = shop(new Talk(variant)).ask('cluster');
    talk.said();
    expect(talk.answerNonce('cluster', '999', 'boom').said()).toEqual(['  stale nonce']);
    expect(talk.refusals.size).toBe(0);
  });
});

test('delta: a version that nobody has accepted yet -> alone in its response; proven ones -> together', () => {
  const talk = new Talk('delta').put('a', testCluster('a')).put('b', testCluster('b')).prove();
  talk.put('new', testCluster('new')).put('other', testCluster('other'));
  expect(talk.ask('cluster').said()).toEqual(['> cluster (all)', '< cluster a b', '< cluster new', '< cluster other']);
});

test('delta: two versions in flight, the first refused -> the second counts', () => {
  const talk = new Talk('delta').put('x', testListener('x', 'one')).ask('listener');
  talk.judge = () => 'silent';
  talk.put('x', testListener('x', 'two')).flush();
  talk.put('x', testListener('x', 'three')).flush();
  talk.said();
  talk.answer({ nack: 'two is bad' }).answer('ack');
  expect(talk.said()).toEqual(['  refused: two is bad', '  held: listener x at last good', '  recovered: listener x']);
});

test('a proxy that never answers -> a bounded number of responses in flight', () => {
  const talk = new Talk('delta');
  for (let i = 0; i < 3000; i++) talk.put(`c${i}`, testCluster(`c${i}`));
  talk.judge = () => 'silent';
  talk.ask('cluster');
  expect(talk.unanswered.length).toBe(1024);
});

describe('delta: virtual hosts', () => {
  test('asked for without a name -> all of them together, also unproven ones, and one that goes is taken away first', () => {
    const talk = new Talk('delta').put('a', testVirtualHost('a'), testCluster('a')).put('b', testVirtualHost('b'));
    expect(talk.ask('virtual-host').said()).toEqual(['> virtual-host (all)', '< virtual-host gateway/a gateway/b']);
    talk.ask('cluster').ask('listener').said();
    talk.put('c', testVirtualHost('c')).flush();
    expect(talk.said()).toEqual(['< virtual-host gateway/c']);
    expect(talk.put('a').flush().said()).toEqual(['< virtual-host -gateway/a', '< cluster -a']);
  });

  test('one of many is refused -> the others arrive, and the refusal names it', () => {
    const talk = new Talk('delta');
    for (let i = 0; i < 100; i++) talk.put(`h${i}`, testVirtualHost(`h${i}`, i === 37 ? 'bad' : `h${i}`));
    talk.judge = ({ entries }) =>
      entries.some(({ any }) => Buffer.from(any).includes('bad')) ? { nack: 'no' } : 'ack';
    const sent = talk.ask('virtual-host').said();
    expect(sent.filter((line) => line.startsWith('<')).length).toBeLessThan(30);
    expect([...talk.refusals.values()].map(({ entry }) => entry.name)).toEqual(['gateway/h37']);
    talk.said();
    expect(talk.reconnect().ask('virtual-host').said()).toEqual(['--- reconnect', '> virtual-host (all)']);
  });

  test('changes while an answer is awaited -> one response with all of them, when it has come', () => {
    const talk = new Talk('delta').put('a', testVirtualHost('a')).ask('virtual-host');
    talk.judge = () => 'silent';
    talk.put('b', testVirtualHost('b')).flush();
    for (let i = 0; i < 50; i++) talk.put(`h${i}`, testVirtualHost(`h${i}`)).flush();
    expect(talk.said().filter((line) => line.startsWith('<'))).toHaveLength(2);
    talk.judge = () => 'ack';
    const later = talk
      .answer('ack')
      .said()
      .filter((line) => line.startsWith('<'));
    expect(later).toHaveLength(1);
    expect(later[0]!.split(' ')).toHaveLength(2 + 50);
  });

  test('none there is -> one empty response, so that the listener comes into use', () => {
    expect(new Talk('delta').ask('virtual-host').said()).toEqual(['> virtual-host (all)', '< virtual-host (none)']);
  });
});
