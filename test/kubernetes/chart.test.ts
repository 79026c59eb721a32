// The Helm chart without a cluster: what a real Helm renders, against what `portolan install` prints.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { findHelm } from '../../scripts/helm.mjs';
import { version } from '../../src/base/version.ts';
import type { AnyObject } from '../../src/kube/objects/object.ts';
import { runPortolan } from '../support/portolan.ts';

const helm = findHelm();
const everyChoice = 'test/kubernetes/every-choice.yaml';

describe.skipIf(helm.path === undefined)(`chart (${helm.why ?? 'with Helm'})`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-chart-'));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  const template = (args: readonly string[], { chart = 'deploy/chart', namespace = 'portolan-system' } = {}) =>
    execFileSync(helm.path!, ['template', 'portolan', chart, '-n', namespace, '--kube-version', '1.35.0', ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const imagesIn = (text: string) => new Set(text.match(/image: .*portolan.*/g));

  test('every choice, written as people write it -> the objects of portolan install', async () => {
    const printed = await runPortolan(['install', '--print', '--values', everyChoice]);
    expect([printed.code, printed.err]).toEqual([0, '']);
    const rendered = objectsIn(template(['--values', everyChoice]));
    expect(rendered).toEqual(objectsIn(printed.out));
    const agent = rendered.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'portolan-agent');
    expect(agent).toMatchObject({
      spec: {
        template: {
          metadata: { annotations: { 'example.com/owner': 'platform' } },
          spec: {
            imagePullSecrets: [{ name: 'registry' }],
            nodeSelector: { 'kubernetes.io/os': 'linux' },
            tolerations: [{ key: 'dedicated', operator: 'Exists' }],
            containers: [
              {
                image: `registry.example:5000/portolan:${version}`,
                imagePullPolicy: 'Always',
                resources: { requests: { cpu: '1' }, limits: { cpu: '2', memory: '192Mi' } },
              },
            ],
          },
        },
      },
    });
    const text = JSON.stringify(rendered);
    expect(text).toContain('"--cluster-id","4200000"');
    expect(text).toContain('"--client","240.0.0.0/4","--client","2001:db8::/32"');
  });

  test('an image without a tag -> the version of the chart; with a tag or a digest -> as it is', () => {
    const cases = {
      'registry.example/portolan': `registry.example/portolan:${version}`,
      'registry.example:5000/portolan': `registry.example:5000/portolan:${version}`,
      'registry.example/portolan:0.0.9': 'registry.example/portolan:0.0.9',
      'registry.example:5000/portolan@sha256:ab': 'registry.example:5000/portolan@sha256:ab',
    };
    for (const [given, expected] of Object.entries(cases))
      expect(imagesIn(template(['--set', `image=${given}`]))).toEqual(new Set([`image: "${expected}"`]));
  });

  test('values of an older chart, as --reuse-values keeps them -> its default image is replaced, missing sections are there', async () => {
    const chart = join(directory, 'upgraded');
    cpSync('deploy/chart', chart, { recursive: true });
    const { dashboard: _later, adminFrom: _too, ...old } = parse(readFileSync('deploy/chart/values.yaml', 'utf8'));
    const { lameduck: _new, clients: _also, egress: _third, ...dns } = old.dns;
    writeFileSync(join(chart, 'values.yaml'), stringify({ ...old, image: 'portolan:0.1.0', dns }));
    // A later release: its defaults have moved on.
    const about = join(chart, 'Chart.yaml');
    writeFileSync(about, readFileSync(about, 'utf8').replaceAll(version, '9.9.9'));
    const text = template([], { chart });
    expect(imagesIn(text)).toEqual(new Set(['image: "portolan:9.9.9"']));
    const now = template([]).replaceAll(`portolan:${version}`, 'portolan:9.9.9');
    expect(objectsIn(text)).toEqual(objectsIn(now));
    expect(imagesIn(template(['--set', 'image=registry.example/portolan:0.1.0'], { chart }))).toEqual(
      new Set(['image: "registry.example/portolan:0.1.0"']),
    );
  });

  test.each([
    [
      'another namespace',
      [],
      'other',
      'namespace: parts look for each other in portolan-system; give -n portolan-system',
    ],
    ['an id in upper case', ['dns.clusterId=East'], 'portolan-system', 'dns.clusterId'],
    ['an id of three labels', ['dns.clusterId=a.b.c'], 'portolan-system', 'dns.clusterId'],
    ['a CPU that is none', ['agent.cpu=lots'], 'portolan-system', 'agent.cpu'],
    ['a pull policy that is none', ['imagePullPolicy=Sometimes'], 'portolan-system', 'imagePullPolicy'],
    ['a misspelled value', ['agent.nodeselector.a=b'], 'portolan-system', 'nodeselector'],
  ])('%s -> refused with a reason', (_what, set, namespace, reason) => {
    expect(() =>
      template(
        set.flatMap((one) => ['--set', one]),
        { namespace },
      ),
    ).toThrow(reason);
  });

  test('the namespace of Secrets for external services -> kept at uninstall', () => {
    const external = objectsIn(template([]), (one) => one.metadata.name === 'portolan-external');
    expect(external).toMatchObject([
      { kind: 'Namespace', metadata: { annotations: { 'helm.sh/resource-policy': 'keep' } } },
    ]);
  });
});

/** Without definitions, and without namespaces, which Helm makes itself or keeps; in one order. */
function objectsIn(text: string, isWanted = ({ kind }: AnyObject) => kind !== 'Namespace'): AnyObject[] {
  const objects = parseAllDocuments(text)
    .map((document) => document.toJS() as AnyObject | null)
    .filter((one): one is AnyObject => one !== null && one.kind !== 'CustomResourceDefinition')
    .filter(isWanted);
  const keyOf = ({ kind, metadata }: AnyObject) => `${kind} ${metadata.namespace} ${metadata.name}`;
  return objects.sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
}
