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

const field = (type: 'list' | 'object' | 'number' | 'any') => ({ type, description: '' });

test.each([
  ['nothing wrong', { address: '10.0.0.1', weight: 1 }, []],
  ['a required field', {}, ['extension.config.address: required']],
  ['another type', { address: '1', weight: 'x' }, ['extension.config.weight: must be of type integer']],
  ['another text', { address: 'nonsense' }, ['extension.config.address: must match ^[0-9.]+$']],
  ['an unknown field', { address: '1', x: 1 }, ['extension.config.x: unknown field of Site']],
])('plugin: %s -> its field', (_what, config, problems) => {
  expect(pluginProblems(plugin, config, ['http', 'http'])).toEqual(problems);
});

test.each<[string, ExtensionPlugin['config'], unknown, string[]]>([
  ['a list and a map in fields of these types', { l: field('list'), m: field('object') }, { l: [1], m: { a: [] } }, []],
  ['a fraction', { n: field('number') }, { n: 0.5 }, []],
  [
    'a map for a list',
    { l: field('list'), m: field('object') },
    { l: {}, m: [] },
    ['extension.config.l: must be of type list', 'extension.config.m: must be of type object'],
  ],
  ['any JSON in a field', { a: field('any') }, { a: [{ b: [null, 1] }] }, []],
  ['a list where fields are wanted', {}, [1], ['extension.config: must be a map for Site']],
  ['a list where any JSON is taken', 'any', [1, { a: 2 }], []],
])('plugin: config of any JSON, %s -> judged by its type [004-22]', (_what, config, given, problems) => {
  expect(pluginProblems({ ...plugin, config }, given, ['http'])).toEqual(problems);
});

test('plugin: its own check finds something, or throws -> a problem of the resource that uses it', () => {
  const checked = (check: ExtensionPlugin['check']) =>
    pluginProblems({ ...plugin, config: 'any', check }, [], ['http']);
  expect(checked((config) => ((config as unknown[]).length === 0 ? ['is empty'] : []))).toEqual([
    'extension.config: is empty',
  ]);
  expect(
    checked(() => {
      throw new Error('broken');
    }),
  ).toEqual(['extension.config: Site could not check it: broken']);
});

test('plugin: protocols that it does not support -> each once', () => {
  expect(pluginProblems(plugin, { address: '1' }, ['http', 'tcp', 'tcp'])).toEqual([
    'extension.type: Site does not support protocol tcp',
  ]);
});
