// The same objects as Helm templates: the description is filled with marks in place of values, and each mark becomes an
// expression. So the chart cannot say anything that `portolan install` does not. Pure.

import { clusterIdProperty, clusterPropertyType } from '../clusterset/kinds/cluster-property.ts';
import { flowReaderRole } from '../kube/objects/admin-ticket.ts';
import { type Manifest, manifest } from '../kube/objects/manifest.ts';
import { namespaceType } from '../kube/objects/namespace.ts';
import { apiVersionOf } from '../kube/objects/object.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
import { serviceAccountType } from '../kube/objects/rbac.ts';
import { admissionSince, isAdmission } from './admission.ts';
import { type Gated, templateCondition } from './gate.ts';
import { formerDefaultImage, pinnedPattern } from './image.ts';
import { commonObjects, gatedByPart, isRight, secretNamespaces } from './objects.ts';
import { valuesSchema } from './schema.ts';
import { commentedValues } from './value-comments.ts';
import { contradictions, defaultValues, type PartName, type Values } from './values.ts';

export interface ChartFile {
  readonly path: string;
  readonly text: string;
}

type Stringify = (value: unknown) => string;

export function chartFiles(version: string, stringify: Stringify): ChartFile[] {
  const parts = [...gatedByPart(markedValues())];
  // Helm makes the namespace that it installs into, and no other.
  const common = commonObjects().filter(({ type }) => type !== namespaceType);
  return [
    { path: 'Chart.yaml', text: stringify(chartOf(version)) },
    { path: 'values.yaml', text: commentedValues(stringify) },
    { path: 'values.schema.json', text: `${JSON.stringify(valuesSchema(), undefined, 2)}\n` },
    { path: 'templates/_helpers.tpl', text: helpers(stringify) },
    {
      path: 'templates/common.yaml',
      text: [
        values,
        ...secretNamespaces.map((name) => namespaceText(name, stringify)),
        ...common.filter(isMadeByHomes).map((one) => textUnlessThere(one, stringify)),
        textsOf(
          common.filter((one) => !isMadeByHomes(one)).map((one) => ({ manifest: one })),
          stringify,
        ),
      ].join(''),
    },
    ...parts.map(([name, objects]) => ({ path: `templates/${name}.yaml`, text: templateOf(name, objects, stringify) })),
    { path: 'templates/checks.yaml', text: `${values}${checks}` },
  ];
}

function chartOf(version: string): object {
  return {
    apiVersion: 'v2',
    name: 'portolan',
    description:
      'Federated service discovery: names, addresses and a secure way to services in other clusters and meshes',
    type: 'application',
    version,
    appVersion: version,
    kubeVersion: '>=1.29.0-0',
  };
}

/** `helm upgrade --reuse-values` keeps the values of an older chart, which lacked sections that templates of today read. */
const values = '{{- $v := include "portolan.values" . | fromYaml }}\n';

function helpers(stringify: Stringify): string {
  const defaults = stringify(defaultValues).trimEnd();
  return `{{- define "portolan.defaults" }}
${defaults}
{{- end }}
{{- define "portolan.values" }}
{{- mergeOverwrite (include "portolan.defaults" . | fromYaml) (deepCopy .Values) | toYaml }}
{{- end }}
{{- /* A number as people write it: 4200000, not 4.2e+06. */}}
{{- define "portolan.text" }}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ printf "%.0f" . }}{{ else }}{{ . }}{{ end }}
{{- end }}
{{- /* Follows the version unless a tag or a digest pins it. */}}
{{- define "portolan.image" }}
{{- $image := ternary "portolan" .image (eq .image ${JSON.stringify(formerDefaultImage)}) }}
{{- if regexMatch ${JSON.stringify(pinnedPattern.source)} $image }}{{ $image }}{{ else }}{{ $image }}:{{ .version }}{{ end }}
{{- end }}
`;
}

/** Joining makes one too, and people keep Secrets in them: they are made where there are none, and stay. */
function namespaceText(name: string, stringify: Stringify): string {
  const annotations = { 'helm.sh/resource-policy': 'keep' };
  return textUnlessThere(manifest(namespaceType, { name, annotations }, {}), stringify);
}

/** An embedded home has them from its start. */
function isMadeByHomes({ type, object }: Manifest): boolean {
  return type === serviceAccountType || object.metadata.name === flowReaderRole;
}

/** Helm refuses to install what somebody else has made. */
function textUnlessThere({ type, object }: Manifest, stringify: Stringify): string {
  const { name, namespace = '' } = object.metadata;
  const owner = '(dig "metadata" "annotations" "meta.helm.sh/release-name" "" $there)';
  const place = [apiVersionOf(type), type.kind, namespace, name].map((word) => JSON.stringify(word)).join(' ');
  return `{{- $there := lookup ${place} }}
{{- if or (not $there) (eq ${owner} .Release.Name) }}
---
${stringify(object)}{{- end }}
`;
}

/** The default values with every leaf replaced by a mark that names it. */
function markedValues(): Values {
  const marked = (value: unknown, path: string): unknown => {
    if (isLeaf(value)) return `MARK(${markKind(value)} ${path})`;
    return Object.fromEntries(
      Object.entries(value as object).map(([key, one]) => [key, marked(one, `${path}.${key}`)]),
    );
  };
  return marked(defaultValues, '.Values') as Values;
}

function isLeaf(value: unknown): boolean {
  return typeof value !== 'object' || value === null || Array.isArray(value) || Object.keys(value).length === 0;
}

function markKind(value: unknown): string {
  if (Array.isArray(value)) return 'list';
  if (typeof value === 'object') return 'map';
  return typeof value === 'number' ? 'number' : 'text';
}

function templateOf(name: PartName, objects: readonly Gated[], stringify: Stringify): string {
  return `${values}{{- if $v.${name}.enabled }}\n${textsOf(objects, stringify)}{{- end }}\n`;
}

// Helm that is connected knows the kinds: an embedded home says 1.35 and serves no admission. `helm template` knows the version alone.
const admissionServed =
  '(or (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy") ' +
  '(and (not (.Capabilities.APIVersions.Has "apps/v1/Deployment")) ' +
  `(semverCompare ">=${admissionSince}-0" .Capabilities.KubeVersion.Version)))`;

function textsOf(objects: readonly Gated[], stringify: Stringify): string {
  const texts = objects.map(({ manifest, gate }) => {
    const text = `---\n${expressions(templateText(manifest, stringify))}`;
    const conditions = [
      ...(isRight(manifest) ? [] : ['(not .Values.rightsOnly)']),
      ...(isAdmission(manifest) ? [admissionServed] : []),
      ...(gate === undefined ? [] : [`(${templateCondition(gate)})`]),
    ];
    const condition = conditions.length > 1 ? `and ${conditions.join(' ')}` : conditions[0];
    return condition === undefined ? text : `{{- if ${condition} }}\n${text}{{- end }}\n`;
  });
  return texts.join('').replaceAll('.Values.', '$v.');
}

function templateText({ object }: Manifest, stringify: Stringify): string {
  return stringify(object);
}

const mark = String.raw`MARK\((number|text|list|map) ([\w.]+)\)`;

function expressions(yaml: string): string {
  return (
    yaml
      // Arguments that depend on another value.
      .replace(
        /^( *)- "?WHEN\(([\w.]+)\)\s+(MARK\(text\s+[\w.]+\):\d+|[^\s"]+)"?\n/gm,
        (_text, indent, path, word) =>
          `${indent}{{- if ${path} }}\n${indent}- ${/^\d/.test(word) ? `"${word}"` : word.replace(/\s+/g, ' ')}\n${indent}{{- end }}\n`,
      )
      // A flag for each item.
      .replace(
        /^( *)- EACH\((--[\w-]+) ([\w.]+)\)\n/gm,
        (_text, indent, flag, path) =>
          `${indent}{{- range ${path} }}\n${indent}- ${flag}\n${indent}- ${textOf(path, '.')}\n${indent}{{- end }}\n`,
      )
      // Items of a list among others, and what stands there if it is empty.
      .replace(/^( *)- ITEMS\(list ([\w.]+)\)\n((?: +- ELSE:\n(?: {2,}\S.*\n)+)*)/gm, (_text, indent, path, rest) => {
        const otherwise = rest.replace(/^( *)- ELSE:\n {4,}/gm, '$1- ');
        const items = `${indent}{{- with ${path} }}\n${indent}{{- toYaml . | nindent ${indent.length} }}\n`;
        return `${items}${otherwise === '' ? '' : `${indent}{{- else }}\n${otherwise}`}${indent}{{- end }}\n`;
      })
      // Fields that are left out if they are empty.
      .replace(/^( *)(\w+): "?WITH\((\w+) ([\w.]+)\)"?\n/gm, (_text, indent, key, kind, path) => {
        const value =
          kind === 'text' ? ` ${textOf(path, '.')}` : `\n${indent}  {{- toYaml . | nindent ${indent.length + 2} }}`;
        return `${indent}{{- with ${path} }}\n${indent}${key}:${value}\n${indent}{{- end }}\n`;
      })
      // Addresses, such as 0.0.0.0:53.
      .replace(
        new RegExp(`"?${mark}:(\\d+)"?`, 'g'),
        (_text, _kind, path, port) => `{{ printf "%s:${port}" ${path} | quote }}`,
      )
      // An option whose value is empty is left out together with its flag.
      .replace(new RegExp(`^( *)- (--[\\w-]+)\\n *- "?${mark}"?\\n`, 'gm'), (text, indent, flag, _kind, path) =>
        optionalFlags.has(flag)
          ? `${indent}{{- with ${path} }}\n${indent}- ${flag}\n${indent}- ${textOf(path, '.')}\n${indent}{{- end }}\n`
          : text,
      )
      .replace(
        new RegExp(`^( *)clusterIP: "?${mark}"?\\n`, 'gm'),
        (_text, indent, _kind, path) =>
          `${indent}{{- with ${path} }}\n${indent}clusterIP: {{ . }}\n${indent}{{- end }}\n`,
      )
      .replace(new RegExp(`^( *)(\\w+): "?${mark}"?\\n`, 'gm'), (text, indent, key, kind, path) =>
        kind === 'list' ? `${indent}${key}:\n${indent}  {{- toYaml ${path} | nindent ${indent.length + 2} }}\n` : text,
      )
      .replace(/^( *- )"?MARK\(number ([\w.]+)\)"?\n/gm, (_text, before, path) => `${before}${textOf(path)}\n`)
      .replace(new RegExp(`"?${mark}"?`, 'g'), (_text, kind, path) =>
        kind === 'number' ? `{{ ${path} }}` : textOf(path),
      )
  );
}

function textOf(path: string, value = path): string {
  if (path === '.Values.image')
    return '{{ include "portolan.image" (dict "image" .Values.image "version" $.Chart.AppVersion) | quote }}';
  return isNumberToo(path) ? `{{ include "portolan.text" ${value} | quote }}` : `{{ ${value} | quote }}`;
}

/** Values that people write as numbers. */
function isNumberToo(path: string): boolean {
  return /\.(cpu|cpuLimit|memory|clusterId|lameduck|drainSeconds)$/.test(path);
}

const optionalFlags: ReadonlySet<string> = new Set(['--cluster-id', '--forward', '--stub-advertise']);

const { group, version: propertyVersion, kind: propertyKind } = clusterPropertyType;
const property = `lookup "${group}/${propertyVersion}" "${propertyKind}" "" "${clusterIdProperty}"`;

/** The contradictions that `valueProblems` names, said by Helm before anything is changed. */
const checks = [
  `{{- if ne .Release.Namespace "${systemNamespace}" }}{{ fail "namespace: parts look for each other in ${systemNamespace}; give -n ${systemNamespace}" }}{{- end }}\n`,
  ...contradictions.map(
    ({ path, why, template }) =>
      `{{- if ${template.replaceAll('.Values.', '$v.')} }}{{ fail "${path}: ${why}" }}{{- end }}\n`,
  ),
  `{{- $joined := dig "spec" "value" "" (${property}) }}\n`,
  `{{- $id := include "portolan.text" $v.dns.clusterId }}\n`,
  `{{- if and $v.dns.enabled $joined $id (ne $joined $id) }}{{ fail (printf "dns.clusterId: %s, but this cluster joined as %s; give --set dns.clusterId=%s" $id $joined $joined) }}{{- end }}\n`,
].join('');
