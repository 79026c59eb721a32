// A plugin from outside the source tree: loaded by its path, checked, and in force in a real Envoy.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { loadPlugins } from '../src/external/plugins/edge/load.ts';
import { externalService } from '../src/external/testing/services.ts';
import { externalResources } from '../src/xds/external/generate.ts';
import { testInput } from '../src/xds/external/testing/agreement.ts';
import { makeEntry } from '../src/xds/view/entry.ts';
import { describeWith } from './support/counterparts.ts';
import { startExternalNamespace } from './support/external-namespace.ts';

const directory = mkdtempSync(join(tmpdir(), 'portolan-plugin-'));
const file = join(directory, 'site.mjs');
afterAll(() => rmSync(directory, { recursive: true, force: true }));

// The example of docs/guides/plugins.md.
writeFileSync(
  file,
  `export default {
  type: 'Site',
  protocols: ['http'],
  config: {
    address: { type: 'string', isRequired: true, pattern: /^[0-9.]+$/, description: 'where the site is' },
    folder: { type: 'string', pattern: /^\\/[a-z/]*$/, description: 'in front of every path' },
  },
  emit: ({ config, name, port }) => ({
    cluster: {
      type: 'STATIC',
      connect_timeout: '5s',
      load_assignment: {
        cluster_name: name,
        endpoints: [
          { lb_endpoints: [{ endpoint: { address: { socket_address: { address: config.address, port_value: port } } } }] },
        ],
      },
    },
    routeAction: { host_rewrite_literal: 'site.example', prefix_rewrite: config.folder ?? '/' },
  }),
};
`,
);

const site = (config: string) =>
  externalService(
    `{ match: [{ type: InternalVIP, value: site.ext, port: 80, protocol: http }], destination: { type: Extension, extension: { type: Site, config: ${config} } } }`,
    { name: 'site', vips: { 'site.ext': '242.0.0.1' } },
  );

describeWith(['envoy', 'ip', 'nft'], 'external services, a plugin from outside', () => {
  test('[004-21, 004-40] a plugin in a file of its own -> its cluster and route are in force', async () => {
    const plugins = await loadPlugins([file]);
    const outside = await startExternalNamespace({ plugins, services: () => [site('{ address: 10.50.0.2 }')] });
    try {
      const answer = await outside.ask({ do: 'http', to: '242.0.0.1:80', host: 'site.ext' });
      expect(answer).toContain('200 web2 host=site.example');
    } finally {
      await outside.stop();
    }
  }, 60_000);
});

test('a plugin in a file of its own -> its resources can be sent by our server; a bad configuration gives no cluster', async () => {
  const plugins = await loadPlugins([file]);
  const generate = (config: string) => externalResources({ ...testInput, plugins, services: [site(config)] });
  for (const resource of generate('{ address: 10.50.0.2 }')) expect(() => makeEntry(resource)).not.toThrow();
  for (const config of ['{ address: nonsense }', '{}']) {
    const clusters = generate(config).filter(({ type }) => type === 'cluster');
    expect(clusters.map(({ name }) => name)).toEqual(['blackhole', 'passthrough']);
  }
});

test.each([
  ['missing.mjs', undefined, 'cannot be loaded'],
  ['empty.mjs', 'export default 7', 'not an object'],
  ['half.mjs', 'export default { type: "X", protocols: ["http"], config: {} }', 'emit must be a function'],
  [
    'twin.mjs',
    'export default { type: "Lambda", protocols: ["http"], config: {}, emit: () => ({}) }',
    'already a plugin',
  ],
])('a plugin file that is none: %s -> refused with the reason', async (name, text, reason) => {
  if (text !== undefined) writeFileSync(join(directory, name), text);
  await expect(loadPlugins([join(directory, name)])).rejects.toThrow(reason);
});
