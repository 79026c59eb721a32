// Reading definitions from the text of files.

import { describe, expect, test } from 'vitest';
import { loadDefinitions } from './bundled.ts';

describe('loadDefinitions', () => {
  test('load: several documents in one text, empty ones between -> all of them', () => {
    const one = 'apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: { name: a }\n';
    expect(loadDefinitions([`---\n${one}---\n---\n${one}`, '']).length).toBe(2);
  });

  test('load: not YAML, another kind -> an error that says which file', () => {
    expect(() => loadDefinitions(['', '{'])).toThrow(/definition file 2 is not YAML/);
    expect(() => loadDefinitions(['apiVersion: v1\nkind: Pod'])).toThrow(/definition file 1 holds v1 Pod/);
  });
});
