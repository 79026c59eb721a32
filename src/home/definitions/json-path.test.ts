import { expect, test } from 'vitest';
import { findByPath, parseJsonPath } from './json-path.ts';

const object = {
  metadata: { name: 'n', annotations: { 'a.b/c': 'x' } },
  spec: { ips: ['10.0.0.1', '10.0.0.2'], ports: [{ name: 'http', port: 80 }, { port: 81 }], on: true },
  status: {
    conditions: [
      { type: 'Ready', status: 'True' },
      { type: 'Conflict', status: 'False' },
    ],
  },
};

test.each<[string, unknown[]]>([
  ['.', [object]],
  ['.metadata.name', ['n']],
  ['.spec.ports[0].port', [80]],
  ['.spec.ips[-1]', ['10.0.0.2']],
  ['.spec.ips[*]', ['10.0.0.1', '10.0.0.2']],
  ['.spec.ports[*].name', ['http']],
  [".metadata.annotations['a.b/c']", ['x']],
  ['.metadata.annotations["a.b/c"]', ['x']],
  ['.metadata.annotations.a\\.b/c', ['x']],
  ['.status.conditions[?(@.type=="Ready")].status', ['True']],
  [".status.conditions[?(@.type == 'Conflict')].status", ['False']],
  ['.status.conditions[?(@.type!="Ready")].type', ['Conflict']],
  ['.spec.ports[?(@.port==81)].port', [81]],
  ['.spec.ports[?(@.name)].port', [80]],
  ['.spec.on', [true]],
  ['.spec.nothing.at.all', []],
  ['.spec.ips[9]', []],
  ['.spec.ips.length', []],
  ['.constructor', []],
])('json path: %s -> %j', (text, expected) => {
  const parsed = parseJsonPath(text);
  expect(parsed.kind).toBe('parsed');
  expect(findByPath(parsed.kind === 'parsed' ? parsed.path : [], object)).toEqual(expected);
});

test.each([
  '',
  'spec',
  '$.spec',
  '.spec..name',
  '.spec[',
  '.spec[0:2]',
  '.a[?(@.b<1)]',
  '.a b',
  `.${'a'.repeat(1001)}`,
])('json path: %.20j -> refused', (text) => {
  expect(parseJsonPath(text)).toEqual({ kind: 'refused', reason: expect.any(String) });
});
