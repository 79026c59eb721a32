import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { deployManifests } from './deploy-manifests.ts';

const folder = fileURLToPath(new URL('../../../deploy/manifests/', import.meta.url));

describe('manifests', () => {
  test.each(deployManifests().map((file) => [file.name, file] as const))(
    'manifests: deploy/manifests/%s -> the objects that the commands write',
    (name, { manifests }) => {
      const documents = parseAllDocuments(readFileSync(`${folder}${name}`, 'utf8')) as { toJS(): unknown }[];
      expect(documents.map((document) => document.toJS())).toEqual(manifests.map(({ object }) => object));
    },
  );

  test('manifests: no file in deploy/manifests that nobody generates', () => {
    const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
    expect(files.sort()).toEqual(
      deployManifests()
        .map(({ name }) => name)
        .sort(),
    );
  });

  test('manifests: applied as they are -> no object names an owner that is not there, or it would be collected as garbage', () => {
    const owned = deployManifests().flatMap(({ name, manifests }) =>
      manifests
        .filter(({ object }) => object.metadata.ownerReferences !== undefined)
        .map(({ object }) => [name, object]),
    );
    expect(owned).toEqual([]);
  });

  test('manifests: no rule is wider than a namespace gives -> no wildcards, nobody escalates', () => {
    const text = JSON.stringify(deployManifests());
    for (const word of ['"*"', '"escalate"', '"bind"', '"impersonate"', 'cluster-admin'])
      expect(text).not.toContain(word);
  });
});
