import { describe, expect, test } from 'vitest';
import { type LabelSelector, selectsLabels } from './label-selector.ts';

describe('label selectors', () => {
  const selectors: [LabelSelector, boolean][] = [
    [{}, true],
    [{ matchLabels: { app: 'shop' } }, true],
    [{ matchLabels: { app: 'shop', tier: 'web' } }, false],
    [{ matchExpressions: [{ key: 'app', operator: 'In', values: ['a', 'shop'] }] }, true],
    [{ matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['shop'] }] }, false],
    [{ matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['web'] }] }, true],
    [{ matchExpressions: [{ key: 'app', operator: 'Exists' }] }, true],
    [{ matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] }, false],
    [{ matchExpressions: [{ key: 'app', operator: 'Unheard' }] }, false],
    [{ matchExpressions: [{ key: 'constructor', operator: 'Exists' }] }, false],
    [{ matchExpressions: [{ key: 'toString', operator: 'DoesNotExist' }] }, true],
  ];
  test.each(selectors)('selector %j on app=shop -> %s', (selector, isChosen) => {
    expect(selectsLabels(selector, { app: 'shop' })).toBe(isChosen);
  });
});
