import { describe, expect, test } from 'vitest';
import { conditionOf, withConditions } from '../../kube/objects/conditions.ts';
import type { Condition } from '../../kube/objects/object.ts';
import type { Service } from '../../kube/objects/service.ts';
import { type ExportFacts, exportConditions, judgeService } from './export-conditions.ts';
import { mergeShards } from './merge/merge.ts';
import { shardOf } from './merge/testing/shard-text.ts';

const service = (spec: Service['spec']): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'checkout', namespace: 'shop' },
  spec,
});

function conditionsOf(facts: Partial<ExportFacts>): ReturnType<typeof exportConditions> {
  return exportConditions({
    cluster: 'east',
    validity: { kind: 'valid' },
    publication: { kind: 'published', notes: [], readyCount: 1, refused: [] },
    merge: mergeShards({ shards: [shardOf('east 2020 http:80')], ports: 'union' }),
    ...facts,
  });
}

function said(facts: Partial<ExportFacts>): Record<string, string> {
  return Object.fromEntries(conditionsOf(facts).map(({ type, status, reason }) => [type, `${status}/${reason}`]));
}

describe('export conditions', () => {
  test('export conditions: published and alone -> valid, exported, no conflicts', () => {
    expect(said({})).toEqual({ Valid: 'True/Valid', Ready: 'True/Exported', Conflict: 'False/NoConflicts' });
  });

  test('export conditions: the broker is away -> what rests on it is Unknown and says since when, faults of this cluster stay', () => {
    const away = { brokerAwaySince: '2026-01-01T00:00:00Z' };
    expect(said(away)).toEqual({ Valid: 'True/Valid', Ready: 'Unknown/BrokerAway', Conflict: 'Unknown/NoConflicts' });
    expect(conditionsOf(away)[1]?.message).toBe(
      'the broker has not answered since 2026-01-01T00:00:00Z; before that: exported to the clusterset',
    );
    expect(said({ ...away, publication: { kind: 'failed', message: 'no room' } })['Ready']).toBe('False/Failed');
    const nothing = { kind: 'published', notes: [], readyCount: 0, refused: [] } as const;
    expect(said({ ...away, publication: nothing })['Ready']).toBe('False/NoReadyEndpoints');
    const validity = { kind: 'invalid', reason: 'NoService', message: 'none' } as const;
    expect(said({ ...away, validity })).toEqual(said({ validity }));
  });

  test('export conditions: endpoints refused, or none ready -> reasons of their own, and not ready with nothing usable', () => {
    const refused = ['endpoint 10.9.0.1 refused: it lies outside'];
    const ready = (readyCount: number, some: string[]) =>
      said({ publication: { kind: 'published', notes: [], readyCount, refused: some } })['Ready'];
    expect(ready(1, refused)).toBe('True/EndpointsRefused');
    expect(ready(0, refused)).toBe('False/EndpointsRefused');
    expect(ready(0, [])).toBe('False/NoReadyEndpoints');
    expect(ready(1, [])).toBe('True/Exported');
  });

  test('export conditions: a name that no service can have -> NoService, and the message says that none will come', () => {
    const message = (key: string) => {
      const validity = judgeService(undefined, key);
      return validity.kind === 'invalid' ? `${validity.reason}: ${validity.message}` : '';
    };
    expect(message(`shop/${'a'.repeat(64)}`)).toContain('cannot exist: its name must be no more than 63 characters');
    expect(message('shop/checkout')).toBe('NoService: service shop/checkout does not exist in this cluster; create it');
  });

  test('export conditions: no service -> NoService, nothing exported, conflicts of others are not ours [003-28]', () => {
    const validity = judgeService(undefined, 'shop/checkout');
    const shards = ['north 2019 http:80', 'west 2020 http:81'].map(shardOf);
    expect(said({ validity, merge: mergeShards({ shards, ports: 'union' }) })).toEqual({
      Valid: 'False/NoService',
      Ready: 'False/Pending',
      Conflict: 'False/NoConflicts',
    });
  });

  test('export conditions: ExternalName -> InvalidServiceType [003-28]', () => {
    const validity = judgeService(service({ type: 'ExternalName', externalName: 'example.org' }), 'shop/checkout');
    expect(said({ validity })['Valid']).toBe('False/InvalidServiceType');
  });

  test('export conditions: NodePort, LoadBalancer and headless -> valid [003-52]', () => {
    expect(judgeService(service({ type: 'NodePort' }), 'a/b').kind).toBe('valid');
    expect(judgeService(service({ type: 'LoadBalancer' }), 'a/b').kind).toBe('valid');
    expect(judgeService(service({ clusterIP: 'None' }), 'a/b').kind).toBe('valid');
  });

  test('export conditions: not written yet, or refused -> Pending, Failed', () => {
    expect(said({ publication: { kind: 'pending', message: 'waiting for the broker' } })['Ready']).toBe(
      'False/Pending',
    );
    expect(said({ publication: { kind: 'failed', message: 'forbidden' } })['Ready']).toBe('False/Failed');
    expect(said({ publication: { kind: 'over-quota', message: 'full' } })['Ready']).toBe('False/QuotaExceeded');
    expect(said({ publication: { kind: 'refused', message: 'not allowed' } })['Ready']).toBe('False/Refused');
    expect(said({ merge: undefined })['Ready']).toBe('False/Pending');
  });

  test('export conditions: type conflict -> loser not ready but valid, winner ready, both in conflict [002-12]', () => {
    const shards = ['west 2019 http:80 type=Headless', 'east 2020 http:80'].map(shardOf);
    const merge = mergeShards({ shards, ports: 'union' });
    expect(said({ merge })).toEqual({ Valid: 'True/Valid', Ready: 'False/Failed', Conflict: 'True/TypeConflict' });
    expect(said({ merge, cluster: 'west' })).toEqual({
      Valid: 'True/Valid',
      Ready: 'True/Exported',
      Conflict: 'True/TypeConflict',
    });
  });

  const messageOf = (type: 'Ready' | 'Conflict', facts: Partial<ExportFacts>) =>
    conditionsOf(facts).find((condition) => condition.type === type)!.message;

  test('export conditions: several conflicts -> all reasons joined by commas, all messages', () => {
    const shards = ['west 2019 http:81 affinity=ClientIP', 'east 2020 http:80'].map(shardOf);
    const merge = mergeShards({ shards, ports: 'union' });
    expect(said({ merge })['Conflict']).toBe('True/PortConflict,SessionAffinityConflict');
    const [port, affinity, ...rest] = messageOf('Conflict', { merge }).split('. ');
    expect(port).toContain('spec.ports[http]: using "http" TCP/81 of cluster west');
    expect(affinity).toContain('spec.sessionAffinity: using "ClientIP" of cluster west');
    expect(rest).toEqual([]);
  });

  test('export conditions: more conflicts than people read -> twenty, and how many more', () => {
    const names = Array.from({ length: 22 }, (_, index) => `p${index}`);
    const shards = ['west 2019', 'east 2020'].map((head, of) =>
      shardOf(`${head} ${names.map((name, index) => `${name}:${1 + of + 2 * index}`).join(' ')}`),
    );
    const told = messageOf('Conflict', { merge: mergeShards({ shards, ports: 'union' }) }).split('. ');
    expect(told).toHaveLength(21);
    expect(told.at(-1)).toBe('2 more conflicts');
  });

  test('export conditions: something was left out, nothing is ready -> Ready says what', () => {
    const notes = ['slice a left out: host names'];
    const publication = { kind: 'published', notes, readyCount: 1, refused: ['endpoint 127.0.0.1 refused'] } as const;
    expect(messageOf('Ready', { publication })).toBe(
      'exported to the clusterset; slice a left out: host names; endpoint 127.0.0.1 refused',
    );
    expect(messageOf('Ready', { publication: { ...publication, readyCount: 0, notes: [], refused: [] } })).toBe(
      'exported to the clusterset, but nothing can be reached here: no endpoint is ready and usable',
    );
  });
});

describe('conditions: writing them', () => {
  const present: Condition[] = [
    { type: 'Foreign', status: 'True', reason: 'Theirs', message: '', lastTransitionTime: '2020-01-01T00:00:00Z' },
    { type: 'Valid', status: 'True', reason: 'Valid', message: 'ok', lastTransitionTime: '2020-01-01T00:00:00Z' },
  ];
  const stamp = { now: '2026-01-01T00:00:00Z' };

  test('conditions: nothing changed -> the same array', () => {
    const wanted = [{ type: 'Valid', status: 'True', reason: 'Valid', message: 'ok' } as const];
    expect(withConditions(present, wanted, stamp)).toBe(present);
  });

  test('conditions: message changed -> transition time stays; status changed -> it moves; foreign ones stay [003-31]', () => {
    const reworded = withConditions(
      present,
      [{ type: 'Valid', status: 'True', reason: 'Valid', message: 'fine' }],
      stamp,
    );
    expect(conditionOf(reworded, 'Valid')?.lastTransitionTime).toBe('2020-01-01T00:00:00Z');
    const flipped = withConditions(present, [{ type: 'Valid', status: 'False', reason: 'No', message: '' }], stamp);
    expect(conditionOf(flipped, 'Valid')?.lastTransitionTime).toBe('2026-01-01T00:00:00Z');
    expect(conditionOf(flipped, 'Foreign')).toBe(present[0]);
  });

  test('conditions: a message of any length -> cut to what metav1.Condition allows', () => {
    const long = withConditions(
      [],
      [{ type: 'Valid', status: 'True', reason: 'Valid', message: 'x'.repeat(40_000) }],
      stamp,
    );
    expect(long[0]?.message.length).toBe(32_768);
  });
});
