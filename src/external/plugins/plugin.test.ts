import { expect, test } from 'vitest';
import { type ExtensionPlugin, pluginProblems } from './plugin.ts';

const plugin: ExtensionPlugin = {
  type: 'Site',
  protocols: ['http'],
  config: {
    address: { type: 'string', isRequired: true, pattern: /^[0-9.]+$/, description: 'where it is' },
    weight: { type: 'integer', description: 'how much' },
  },
  emit: () => ({ cluster: {} }),
};

test.each([
  ['nothing wrong', { address: '10.0.0.1', weight: 1 }, []],
  ['a required field', {}, ['extension.config.address: required']],
  ['another type', { address: '1', weight: 'x' }, ['extension.config.weight: must be of type integer']],
  ['another text', { address: 'nonsense' }, ['extension.config.address: must match ^[0-9.]+$']],
  ['an unknown field', { address: '1', x: 1 }, ['extension.config.x: unknown field of Site']],
])('plugin: %s -> its field', (_what, config, problems) => {
  expect(pluginProblems(plugin, config, ['http', 'http'])).toEqual(problems);
});

test('plugin: protocols that it does not support -> each once', () => {
  expect(pluginProblems(plugin, { address: '1' }, ['http', 'tcp', 'tcp'])).toEqual([
    'extension.type: Site does not support protocol tcp',
  ]);
});
