import { expect, test } from 'vitest';
import { clustersAnswer } from './answer-condition.ts';

const sinceMs = Date.parse('2026-01-02T12:03:00Z');

test('all nodes agree -> False, ready at home and silent from here; some nodes -> their own view; none -> True', () => {
  expect(clustersAnswer(new Map([['east', { nodes: ['a', 'b'], isAll: true, sinceMs }]]), 'west')).toMatchObject({
    status: 'False',
    reason: 'NotAnswering',
    message: 'east: ready at home, does not answer from west since 2026-01-02T12:03:00Z',
  });
  expect(clustersAnswer(new Map([['east', { nodes: ['a'], isAll: false, sinceMs }]]), 'west')).toMatchObject({
    status: 'True',
    reason: 'NotFromSomeNodes',
    message: 'east: ready at home, does not answer from node a of west since 2026-01-02T12:03:00Z',
  });
  expect(clustersAnswer(new Map(), 'west')).toMatchObject({ status: 'True', reason: 'Answering' });
});

test('many clusters and nodes -> a bounded message', () => {
  const nodes = Array.from({ length: 500 }, (_, index) => `node-${index}`);
  const silent = new Map(nodes.map((id) => [id, { nodes, isAll: false, sinceMs }]));
  expect(clustersAnswer(silent, 'west').message.length).toBeLessThan(8_000);
});
