// The examples on the pages of docs/kinds are objects that a home accepts. docs.test.ts holds the pages to the definitions.

import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { exampleOf, kindPages } from '../scripts/kind-pages.ts';
import type { AnyObject } from '../src/kube/objects/object.ts';
import { startHome } from './home.ts';
import { Simulation } from './virtual-world.ts';

const plurals = [...kindPages().keys()].filter((name) => name !== 'README.md').map((name) => name.replace('.md', ''));

test.each(plurals)('pages of kinds: the example of %s -> accepted by a home as it stands there', async (plural) => {
  const simulation = new Simulation({ seed: 1 });
  const { api } = await startHome(simulation);
  const object = parse(exampleOf(plural)) as AnyObject;
  const { namespace } = object.metadata;
  const create = async (path: string, value: object) => {
    const body = Buffer.from(JSON.stringify(value));
    const headers = { 'content-type': 'application/json' };
    const response = await api.handle({ method: 'POST', path, headers, body });
    return { status: response.status, text: Buffer.from(response.body as Uint8Array).toString('utf8') };
  };
  if (namespace !== undefined)
    await create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  // Some examples are for the broker, where the namespace of a clusterset holds it.
  if (namespace === 'prod' && plural !== 'clustersets')
    await create('/apis/portolan.dev/v1alpha1/namespaces/prod/clustersets', {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'ClusterSet',
      metadata: { name: 'prod', namespace },
    });
  const base = namespace === undefined ? '' : `/namespaces/${namespace}`;
  const { status, text } = await create(`/apis/${object.apiVersion}${base}/${plural}?fieldValidation=Strict`, object);
  expect(status, text).toBe(201);
});
