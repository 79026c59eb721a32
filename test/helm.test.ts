// Helm 3 and 4 on an embedded home: the chart of this project and one with definitions, hooks and objects of its own kind are
// installed, upgraded, rolled back and removed; a release that Helm 3 began is carried on by Helm 4.

import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findHelmOf } from '../scripts/helm.mjs';
import { describeWith } from './support/counterparts.ts';
import { asArgs, type Kubectl } from './support/kubectl.ts';
import { KubectlHome } from './support/kubectl-home.ts';
import { run } from './support/portolan.ts';

const helms = ([3, 4] as const).map((major) => ({ major, ...findHelmOf(major) }));

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.charts.example' },
  spec: {
    group: 'charts.example',
    scope: 'Namespaced',
    names: { kind: 'Widget', listKind: 'WidgetList', plural: 'widgets', singular: 'widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: { size: { type: 'integer' }, color: { type: 'string', default: 'red' } },
                'x-kubernetes-validations': [{ rule: 'self.size < 100', message: 'too large' }],
              },
            },
          },
        },
      },
    ],
  },
};

const templates = `apiVersion: charts.example/v1
kind: Widget
metadata: { name: "{{ .Release.Name }}" }
spec: { size: {{ .Values.size }} }
---
apiVersion: v1
kind: Service
metadata: { name: "{{ .Release.Name }}" }
spec:
  selector: { app: web }
  ports:
    - { name: http, port: 80, targetPort: 8080 }
    {{- if .Values.metrics }}
    - { name: metrics, port: 9090 }
    {{- end }}
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: "{{ .Release.Name }}" }
spec:
  replicas: {{ .Values.size }}
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, image: nginx }] }
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: "{{ .Release.Name }}-before"
  annotations: { helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation }
data: { size: "{{ .Values.size }}" }
`;

/** A chart with a definition, an object of its kind, and a hook. */
function writeChart(directory: string): string {
  const chart = join(directory, 'widgets');
  for (const folder of ['crds', 'templates']) mkdirSync(join(chart, folder), { recursive: true });
  writeFileSync(join(chart, 'Chart.yaml'), 'apiVersion: v2\nname: widgets\nversion: 1.0.0\n');
  writeFileSync(join(chart, 'values.yaml'), 'size: 1\nmetrics: true\n');
  writeFileSync(join(chart, 'crds', 'widgets.yaml'), JSON.stringify(definition));
  writeFileSync(join(chart, 'templates', 'all.yaml'), templates);
  return chart;
}

describeWith(['kubectl'], 'Helm on an embedded home', () => {
  const home = new KubectlHome();
  const directory = mkdtempSync(join(tmpdir(), 'portolan-helm-'));
  const chart = writeChart(directory);
  cpSync('deploy/chart', join(directory, 'portolan'), { recursive: true });
  const lacksOne = helms.some(({ path }) => path === undefined);
  let kubectl: Kubectl;
  beforeAll(async () => {
    kubectl = await home.start();
  });
  afterAll(async () => {
    await home.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const commandOf = (path: string | undefined) => (line: string) =>
    run(path!, [...asArgs(line), '--kubeconfig', home.api.kubeconfig], {
      cwd: directory,
      env: { ...process.env, HOME: directory, HELM_CACHE_HOME: directory, HELM_CONFIG_HOME: directory },
    });
  const doneBy = (path: string | undefined) => async (line: string) => {
    const { code, out, err } = await commandOf(path)(line);
    expect({ line, code, err: code === 0 ? '' : err }).toEqual({ line, code: 0, err: '' });
    return out;
  };

  const field = (what: string, n: string, jsonpath: string) => kubectl.ok(`get ${what} ${n} -o jsonpath=${jsonpath}`);

  describe.each(helms)('Helm $major', ({ major, path, why }) => {
    const helm = doneBy(path);
    const title = why === undefined ? '' : ` (${why})`;

    test
      .skipIf(path === undefined)
      .concurrent(
        `a chart with definitions and hooks: install, upgrade, rollback, uninstall -> objects as the chart says each time${title}`,
        async () => {
          const n = `-n helm-${major}`;
          await helm(`install web ${chart} ${n} --create-namespace`);
          const state = async () => [
            await field('widget/web', n, '{.spec.size},{.spec.color}'),
            await field('service/web', n, '{.spec.ports[*].name}'),
            await field('deployment/web', n, '{.spec.replicas}'),
            await field('configmap/web-before', n, '{.data.size}'),
          ];
          expect(await state()).toEqual(['1,red', 'http metrics', '1', '1']);
          const before = await field('service/web', n, '{.spec.clusterIP}');
          await helm(`upgrade web ${chart} ${n} --set size=3,metrics=false`);
          expect(await state()).toEqual(['3,red', 'http', '3', '3']);
          const refused = await commandOf(path)(`upgrade web ${chart} ${n} --set size=300`);
          expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('too large')]);
          expect(await field('widget/web', n, '{.spec.size}')).toBe('3');
          await helm(`rollback web 1 ${n}`);
          expect((await state()).slice(0, 3)).toEqual(['1,red', 'http metrics', '1']);
          expect(await field('service/web', n, '{.spec.clusterIP}')).toBe(before);
          expect(await helm(`history web ${n}`)).toMatch(/Rollback to 1/);
          await helm(`uninstall web ${n}`);
          expect(await kubectl.ok(`get widgets,services,deployments ${n} -o name`)).toBe('');
        },
      );
  });

  // Both want the same namespace.
  test
    .skipIf(lacksOne)
    .concurrent(
      'the chart of this project: install, upgrade, rollback, uninstall by each -> its parts are stored, and go',
      async () => {
        const n = '-n portolan-system';
        const replicas = () => field('deployment/portolan-agent', n, '{.spec.replicas}');
        for (const helm of helms.map(({ path }) => doneBy(path))) {
          await helm(`install portolan portolan ${n} --create-namespace`);
          expect(await kubectl.ok(`get deployments,daemonsets ${n} -o name`)).toContain(
            'daemonset.apps/portolan-proxy',
          );
          await helm(`upgrade portolan portolan ${n} --reset-then-reuse-values --set agent.replicas=3`);
          expect(await replicas()).toBe('3');
          await helm(`rollback portolan 1 ${n}`);
          expect(await replicas()).toBe('2');
          await helm(`uninstall portolan ${n}`);
          expect(await kubectl.ok(`get deployments,daemonsets,networkpolicies,resourcequotas ${n} -o name`)).toBe('');
        }
      },
    );

  test.skipIf(lacksOne)(
    'a release of Helm 3 is carried on by Helm 4 on the server -> its fields change hands, what it leaves out goes',
    async () => {
      const [three, four] = helms.map(({ path }) => doneBy(path)) as [
        (line: string) => Promise<string>,
        (line: string) => Promise<string>,
      ];
      const n = '-n moving';
      await three(`install web ${chart} ${n} --create-namespace`);
      await four(`upgrade web ${chart} ${n} --server-side=true --set size=2,metrics=false`);
      expect(await kubectl.ok(`get service/web ${n} -o jsonpath={.spec.ports[*].name}`)).toBe('http');
      const managers = await kubectl.ok(
        `get service/web ${n} --show-managed-fields -o jsonpath={.metadata.managedFields[*].operation}`,
      );
      expect(managers).toBe('Apply');
      await kubectl.ok(`scale deployment web ${n} --replicas=7`);
      const refused = await commandOf(helms[1]!.path)(`upgrade web ${chart} ${n} --set size=4`);
      expect([refused.code, refused.err]).toEqual([
        1,
        expect.stringMatching(/conflict with .*kubectl.* with subresource .*scale.*: \.spec\.replicas/),
      ]);
      expect(await field('deployment/web', n, '{.spec.replicas}')).toBe('7');
      await four(`upgrade web ${chart} ${n} --set size=4 --force-conflicts`);
      expect(await field('deployment/web', n, '{.spec.replicas}')).toBe('4');
    },
  );
});
