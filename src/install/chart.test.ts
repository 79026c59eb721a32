// What the templates of the chart do beside the objects that they make.

import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { flowReaderRole, ticketAccountOf, ticketKinds } from '../kube/objects/admin-ticket.ts';
import { chartFiles } from './chart.ts';
import { formerDefaultImage, isPinned } from './image.ts';
import { secretNamespaces } from './objects.ts';

const files = new Map(chartFiles('1.2.3', stringify).map(({ path, text }) => [path, text]));
const common = files.get('templates/common.yaml')!;
const helpers = files.get('templates/_helpers.tpl')!;
const checks = files.get('templates/checks.yaml')!;

test.each(secretNamespaces)(
  'chart: namespace %s -> left out where it is, unless it is of this release, and kept',
  (name) => {
    const guard = new RegExp(
      `lookup "v1" "Namespace" "" "${name}" }}\\n{{- if or \\(not \\$there\\) \\(eq \\(dig [^\\n]*release-name[^\\n]* \\.Release\\.Name\\) }}\\n---\\n([^{]*){{- end }}`,
    );
    const [, text = ''] = guard.exec(common) ?? [];
    expect(parse(text)).toMatchObject({
      kind: 'Namespace',
      metadata: { name, annotations: { 'helm.sh/resource-policy': 'keep' } },
    });
  },
);

test.each([
  ...ticketKinds.map((kind) => ({ kind: 'ServiceAccount', version: 'v1', ...ticketAccountOf(kind) })),
  { kind: 'ClusterRole', version: 'rbac.authorization.k8s.io/v1', namespace: '', name: flowReaderRole },
])('chart: $kind $name -> left out where a home has made it', ({ kind, version, namespace, name }) => {
  const guard = new RegExp(
    `lookup "${version}" "${kind}" "${namespace}" "${name}" }}\\n{{- if or \\(not \\$there\\) \\(eq \\(dig [^\\n]*release-name[^\\n]* \\.Release\\.Name\\) }}\\n---\\n([^{]*){{- end }}`,
  );
  const [, text = ''] = guard.exec(common) ?? [];
  expect(parse(text)).toMatchObject({ kind, metadata: { name } });
});

test('chart: values of an older chart -> the defaults lie below them, and no template reads them without', () => {
  expect(helpers).toContain('mergeOverwrite (include "portolan.defaults" . | fromYaml) (deepCopy .Values)');
  const direct = [...files].filter(([path, text]) => path.startsWith('templates/') && text.includes('.Values.'));
  expect(direct).toEqual([]);
});

test('chart: another namespace, an id that the cluster did not join with -> refused with the reason', () => {
  expect(checks).toMatch(/if ne \.Release\.Namespace "portolan-system" }}{{ fail "[^"]*give -n portolan-system"/);
  expect(checks).toMatch(
    /if and \$v\.dns\.enabled \$joined \$id \(ne \$joined \$id\) }}{{ fail \(printf "dns\.clusterId: /,
  );
});

test.each([
  ['agent.cpu', 'agent', 'include "portolan.text" $v.agent.cpu |'],
  ['dns.cpuLimit', 'dns', 'cpu: {{ include "portolan.text" . |'],
  ['dns.clusterId', 'checks', 'include "portolan.text" $v.dns.clusterId }}'],
])('chart: %s given as a number -> written as text', (_path, template, expression) => {
  expect(files.get(`templates/${template}.yaml`)).toContain(expression);
});

test.each([
  ['registry.example:5000/portolan', false],
  [formerDefaultImage, false],
  ['portolan:0.0.9', true],
  ['portolan@sha256:00', true],
])('image %s -> pinned: %s', (image, expected) => {
  expect(isPinned(image)).toBe(expected);
});
