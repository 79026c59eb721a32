import { describe, expect, test } from 'vitest';
import type { SealedRecord } from '../../kinds/sealed-record.ts';
import { type KeyFacts, keyInfo, planKey } from './key-record.ts';

const key = new Uint8Array(32);
const record = (epoch: number, readers: Record<string, string>): SealedRecord => ({
  apiVersion: 'portolan.dev/v1alpha1',
  kind: 'SealedRecord',
  metadata: { name: 'a-1' },
  spec: {
    audience: 'a-1',
    epoch,
    readers: Object.entries(readers).map(([cluster, fingerprint]) => ({ cluster, fingerprint, key: '' })),
  },
});
const facts = (more: Partial<KeyFacts>): KeyFacts => ({
  ...{ present: record(1000, { east: 'e', west: 'w' }), known: { epoch: 1000, key } },
  ...{
    readers: new Map([
      ['east', 'e'],
      ['west', 'w'],
    ]),
    nowSeconds: 2000,
    rotateSeconds: 3600,
    rotateBefore: 0,
    epochSeen: 0,
  },
  ...more,
});

describe('the key of an audience', () => {
  test.each<[string, Partial<KeyFacts>, string]>([
    ['the same readers', {}, 'keep'],
    [
      'one more reader',
      {
        readers: new Map([
          ['east', 'e'],
          ['west', 'w'],
          ['north', 'n'],
        ]),
      },
      'extend',
    ],
    ['a reader is gone', { readers: new Map([['east', 'e']]) }, 'replace 2000'],
    [
      'a reader has another key',
      {
        readers: new Map([
          ['east', 'e'],
          ['west', 'x'],
        ]),
      },
      'replace 2000',
    ],
    ['there is none', { present: undefined, known: undefined }, 'replace 2000'],
    ['it cannot be opened', { known: undefined }, 'replace 2000'],
    ['its time is over', { nowSeconds: 4600 }, 'replace 4600'],
    ['nearly', { nowSeconds: 4599 }, 'keep'],
    ['by command', { rotateBefore: 1500 }, 'replace 2000'],
    ['by command, before it was made', { rotateBefore: 1000 }, 'keep'],
    ['by command, on a clock that is ahead', { rotateBefore: 5000 }, 'replace 5000'],
    ['by command, on a clock that makes no sense', { rotateBefore: 9e12 }, 'keep'],
    ['our clock went back', { nowSeconds: 500, readers: new Map([['east', 'e']]) }, 'replace 1001'],
    ['somebody put an older one back', { known: { epoch: 1500, key } }, 'replace 2000'],
    ['the same, our clock went back', { known: { epoch: 1500, key }, nowSeconds: 1400 }, 'replace 1501'],
  ])('%s', (_what, more, wanted) => {
    const step = planKey(facts(more));
    expect(step.kind === 'replace' ? `replace ${step.epoch}` : step.kind).toBe(wanted);
  });

  test('sealed for one place -> bound to set, exporter, audience, epoch and reader', () => {
    const place = { clusterset: 'prod', exporter: 'east', audience: 'a-1', epoch: 1, reader: 'west' };
    const others = [{ clusterset: 'x' }, { exporter: 'x' }, { audience: 'x' }, { epoch: 2 }, { reader: 'x' }];
    const texts = [place, ...others.map((other) => ({ ...place, ...other }))].map((one) =>
      Buffer.from(keyInfo(one)).toString(),
    );
    expect(new Set(texts).size).toBe(6);
  });
});
