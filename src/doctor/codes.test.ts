import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { accessFaults } from '../../sim/made-faults/access-faults.ts';
import { partFaults } from '../../sim/made-faults/part-faults.ts';
import { sealingFaults } from '../../sim/made-faults/sealing-faults.ts';
import { setFaults } from '../../sim/made-faults/set-faults.ts';
import { exitOf } from '../cli/health/report.ts';
import { allChecks } from './checks/index.ts';
import { codes, codesPage } from './codes.ts';
import { type Check, diagnose } from './diagnosis.ts';
import { type ClusterFacts, NotRead } from './facts.ts';

const root = join(import.meta.dirname, '../..');

describe('codes', () => {
  test('docs/codes.md: -> has every code as the table has it (vitest -u writes it)', async () => {
    await expect(codesPage()).toMatchFileSnapshot(join(root, 'docs/codes.md'));
  });

  test('every code -> has one check, and PTL0001 is for checks that fail', () => {
    expect(['PTL0001', ...Object.keys(allChecks)].sort()).toEqual(Object.keys(codes).sort());
  });

  test('every code -> a fault made on purpose shows it and its end', () => {
    const made = new Set<string>(
      [...setFaults, ...partFaults, ...accessFaults, ...sealingFaults].map(({ code }) => code),
    );
    // Made by tests of this file: a check that fails by itself, and a record that a broker with our definitions refuses.
    for (const code of ['PTL0001', 'PTL0306']) made.add(code);
    expect(Object.keys(codes).filter((code) => !made.has(code))).toEqual([]);
  });
});

const facts = { cluster: 'west', nowMs: 0, health: { value: { status: 200, text: '', clockOffMs: 0 } } };

function found(code: string, more: Partial<ClusterFacts>, check = (allChecks as Record<string, Check>)[code]) {
  return diagnose([{ ...facts, ...more } as ClusterFacts], { [code]: check });
}

function all<T>(answers: readonly T[]) {
  return { value: { answers, unasked: [], idle: '' } };
}

describe('checks', () => {
  test('a resolver says that a zone is old, and that none is -> PTL0502 with its reason, and nothing', () => {
    const state = (stale: string[]) => ({
      resolvers: all([{ resolver: 'dns on n1', stale, why: 'the home is away', copyProblem: '' }]),
    });
    expect(found('PTL0502', state(['clusterset.local'])).findings[0]).toMatchObject({
      subject: 'dns on n1',
      message: 'it answers clusterset.local from old data: the home is away',
    });
    expect(found('PTL0502', state([])).findings).toEqual([]);
  });

  test('some parts could not be asked -> skipped with the reason, not complete; there is none -> skipped, complete', () => {
    const some = found('PTL0901', {
      connections: { value: { answers: [], unasked: ['proxy on n1: silent'], idle: '' } },
    });
    expect(some).toMatchObject({ complete: false, skipped: [{ code: 'PTL0901', why: 'proxy on n1: silent' }] });
    const none = found('PTL0901', { connections: { value: { answers: [], unasked: [], idle: 'no proxy reports' } } });
    expect(none).toMatchObject({
      complete: true,
      skipped: [{ code: 'PTL0901', why: 'no proxy reports', isIdle: true }],
    });
    expect(exitOf(none, 'error')).toBe(0);
  });

  test('a resolver answers with another address, with an error, as it should -> PTL0503 twice', () => {
    const asked = (got: readonly string[] | string) => ({
      asked: all([{ name: 'a', resolver: '127.0.0.1:53', wanted: ['243.0.0.1'], got }]),
    });
    expect(found('PTL0503', asked(['243.0.0.2'])).findings[0]?.message).toBe(
      'it answers 243.0.0.2, expected 243.0.0.1',
    );
    expect(found('PTL0503', asked('ENOTFOUND')).findings[0]?.message).toBe('it answers ENOTFOUND, expected 243.0.0.1');
    expect(found('PTL0503', asked(['243.0.0.1'])).findings).toEqual([]);
  });

  test('a connection fails, and works -> PTL0901 with the reason, and nothing', () => {
    const tried = (problems: string[]) => ({
      connections: all([{ service: 'shop/checkout', from: 'here', problems }]),
    });
    expect(found('PTL0901', tried(['refused'])).findings[0]).toMatchObject({
      subject: 'shop/checkout from here',
      message: 'refused',
    });
    expect(found('PTL0901', tried([])).findings).toEqual([]);
  });

  test('external services -> one finding for those of one cause; a warning where there never was an xDS server', () => {
    const object = (name: string, ...conditions: string[]) => {
      const read = (text: string) => {
        const [type, status, reason] = text.split(' ');
        return { type, status, reason, message: 'why', lastTransitionTime: '2026-01-01T00:00:00Z' };
      };
      return { metadata: { name, namespace: 'sys' }, spec: {}, status: { conditions: conditions.map(read) } };
    };
    const external = [
      object('fine', 'Accepted True Accepted', 'Ready True Ready'),
      object('new'),
      object('a', 'Accepted True Accepted', 'Ready False NotProgrammed'),
      object('b', 'Accepted True Accepted', 'Ready False NotProgrammed'),
      object('elsewhere', 'Accepted False NotVisible', 'Ready False NotAccepted'),
      object('bad', 'Accepted False Invalid', 'Ready False NotAccepted'),
      object('old', 'Accepted True Accepted', 'Ready Unknown XdsSilent'),
    ];
    const at = (parts: string[]) => {
      const value = parts.map((part) => ({ part, state: 'reporting' }));
      const given = { external: { value: external }, parts: { value } } as unknown as Partial<ClusterFacts>;
      return found('PTL0904', given).findings.map((one) => `${one.severity} ${one.subject}: ${one.message}`);
    };
    expect(at([])).toEqual([
      'error MeshExternalService sys/bad: Invalid: why',
      'warning 2 MeshExternalServices: sys/a, sys/b: NotProgrammed: why',
      'warning MeshExternalService sys/old: XdsSilent: why',
    ]);
    expect(at(['xds'])).toContain('error 2 MeshExternalServices: sys/a, sys/b: NotProgrammed: why');
  });

  test('an import that Envoys refuse a part of, or cannot hold -> PTL0903, a warning with the cause', () => {
    const object = (name: string, status: string, reason: string) => ({
      metadata: { name, namespace: 'shop' },
      status: {
        conditions: [
          { type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
          { type: 'Programmed', status, reason, message: 'why', lastTransitionTime: '2026-01-01T00:00:00Z' },
        ],
      },
    });
    const imports = [object('db', 'False', 'Withheld'), object('web', 'True', 'Accepted')];
    const given = { imports: { value: imports }, parts: { value: [] } } as unknown as Partial<ClusterFacts>;
    const said = found('PTL0903', given).findings.map((one) => `${one.severity} ${one.subject}: ${one.message}`);
    expect(said).toEqual(['warning ServiceImport shop/db: Withheld: why']);
  });

  test('a record of a member is not counted -> PTL0306; it is gone -> nothing', () => {
    const refused = [{ cluster: 'east', service: 'shop/huge', why: 'has 1001 ports, more than 1000' }];
    const at = (status: object) => ({ broker: { value: { kind: 'answers', set: status } } }) as Partial<ClusterFacts>;
    expect(found('PTL0306', at({ refused })).findings[0]).toMatchObject({
      subject: 'shop/huge of cluster east',
      message: 'the record has 1001 ports, more than 1000',
    });
    expect(found('PTL0306', at({ refused: [] })).findings).toEqual([]);
  });

  test('a check fails on an odd object -> PTL0001 names it, and the answer is not complete', () => {
    const odd = () => {
      throw new TypeError('spec is null');
    };
    const result = diagnose([facts as ClusterFacts], { PTL0301: odd });
    expect(found('PTL0001', {}, () => []).findings).toEqual([]);
    expect(result.findings[0]).toMatchObject({ code: 'PTL0001', message: 'the check PTL0301 failed: spec is null' });
    expect(result).toMatchObject({ complete: false, skipped: [{ code: 'PTL0301', cluster: 'west' }] });
  });

  test('something could not be read -> skipped with the reason, exit code 8; nothing was reached -> 6', () => {
    const unread = () => {
      throw new NotRead('no answer within 20 s');
    };
    const result = diagnose([facts as ClusterFacts], { PTL0301: unread });
    expect(result).toMatchObject({ findings: [], skipped: [{ why: 'no answer within 20 s' }] });
    expect(exitOf(result, 'error')).toBe(8);
    expect(exitOf({ ...result, clusters: [{ cluster: 'west', reached: false }] }, 'error')).toBe(6);
  });
});
