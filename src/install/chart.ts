// The same objects as Helm templates: the description is filled with marks in place of values, and each mark becomes an
// expression. So the chart cannot say anything that `portolan install` does not. Pure.

import type { Manifest } from '../kube/objects/manifest.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
import { namespaceObjects, objectsByPart } from './objects.ts';
import { defaultValues, type PartName, type Values } from './values.ts';

export interface ChartFile {
  readonly path: string;
  readonly text: string;
}

type Stringify = (value: unknown) => string;

export function chartFiles(version: string, stringify: Stringify): ChartFile[] {
  const parts = [...objectsByPart(markedValues())];
  // Helm makes the namespace that it installs into, and no other.
  const besides = namespaceObjects().find(({ object }) => object.metadata.name !== systemNamespace)!.object;
  return [
    { path: 'Chart.yaml', text: stringify(chartOf(version)) },
    { path: 'values.yaml', text: stringify(defaultValues) },
    { path: 'templates/namespace.yaml', text: stringify(besides) },
    ...parts.map(([name, objects]) => ({ path: `templates/${name}.yaml`, text: templateOf(name, objects, stringify) })),
    { path: 'templates/checks.yaml', text: checks },
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

/** The default values with every leaf replaced by a mark that names it. */
function markedValues(): Values {
  const marked = (value: unknown, path: string): unknown => {
    if (typeof value === 'object' && value !== null) {
      return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, marked(one, `${path}.${key}`)]));
    }
    return typeof value === 'number' ? `MARK(number ${path})` : `MARK(text ${path})`;
  };
  return marked(defaultValues, '.Values') as Values;
}

function templateOf(name: PartName, objects: readonly Manifest[], stringify: Stringify): string {
  const body = objects.map(({ object }) => expressions(stringify(object))).join('---\n');
  return `{{- if .Values.${name}.enabled }}\n${body}{{- end }}\n`;
}

const mark = String.raw`MARK\((number|text) ([\w.]+)\)`;

function expressions(yaml: string): string {
  return (
    yaml
      // An option whose value is empty is left out together with its flag.
      .replace(new RegExp(`^( *)- (--[\\w-]+)\\n *- "?${mark}"?\\n`, 'gm'), (text, indent, flag, _kind, path) =>
        optionalFlags.has(flag)
          ? `${indent}{{- with ${path} }}\n${indent}- ${flag}\n${indent}- {{ . | quote }}\n${indent}{{- end }}\n`
          : text,
      )
      .replace(
        new RegExp(`^( *)clusterIP: "?${mark}"?\\n`, 'gm'),
        (_text, indent, _kind, path) =>
          `${indent}{{- with ${path} }}\n${indent}clusterIP: {{ . }}\n${indent}{{- end }}\n`,
      )
      .replace(new RegExp(`"?${mark}"?`, 'g'), (_text, kind, path) =>
        kind === 'number' ? `{{ ${path} }}` : `{{ ${path} | quote }}`,
      )
  );
}

const optionalFlags: ReadonlySet<string> = new Set(['--forward']);

const required = (condition: string, path: string, why: string) =>
  `{{- if and ${condition} (not ${path}) }}{{ fail "${path.replace('.Values.', '')}: ${why}" }}{{- end }}\n`;

/** The contradictions that `valueProblems` names, said by Helm before anything is changed. */
const checks = [
  required('.Values.dns.enabled', '.Values.dns.clusterId', 'give the id that the cluster joins with'),
  required('(or .Values.dns.enabled .Values.proxy.enabled)', '.Values.agent.enabled', 'dns and proxy need the agent'),
  required('.Values.peering.enabled', '.Values.peering.trustDomain', 'give the trust domain of this mesh'),
  required('.Values.peering.enabled', '.Values.peering.advertise', 'give the address by which peers reach this mesh'),
  required('.Values.authority.enabled', '.Values.authority.federation', 'give the name of the federation'),
].join('');
