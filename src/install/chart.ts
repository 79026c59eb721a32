// The same objects as Helm templates: the description is filled with marks in place of values, and each mark becomes an
// expression. So the chart cannot say anything that `portolan install` does not. Pure.

import { systemNamespace } from '../kube/objects/ours.ts';
import { type Gated, templateCondition } from './gate.ts';
import { commonObjects, gatedByPart, isRight } from './objects.ts';
import { valuesSchema } from './schema.ts';
import { contradictions, defaultValues, type PartName, type Values } from './values.ts';

export interface ChartFile {
  readonly path: string;
  readonly text: string;
}

type Stringify = (value: unknown) => string;

export function chartFiles(version: string, stringify: Stringify): ChartFile[] {
  const parts = [...gatedByPart(markedValues())];
  // Helm makes the namespace that it installs into, and no other.
  const common = commonObjects().filter(({ object }) => object.metadata.name !== systemNamespace);
  return [
    { path: 'Chart.yaml', text: stringify(chartOf(version)) },
    { path: 'values.yaml', text: stringify(defaultValues) },
    { path: 'values.schema.json', text: `${JSON.stringify(valuesSchema(), undefined, 2)}\n` },
    {
      path: 'templates/common.yaml',
      text: textsOf(
        common.map((one) => ({ manifest: one })),
        stringify,
      ),
    },
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

function templateOf(name: PartName, objects: readonly Gated[], stringify: Stringify): string {
  return `{{- if .Values.${name}.enabled }}\n${textsOf(objects, stringify)}{{- end }}\n`;
}

function textsOf(objects: readonly Gated[], stringify: Stringify): string {
  const texts = objects.map(({ manifest, gate }) => {
    const text = `---\n${expressions(stringify(manifest.object))}`;
    const conditions = [
      ...(isRight(manifest) ? [] : ['(not .Values.rightsOnly)']),
      ...(gate === undefined ? [] : [`(${templateCondition(gate)})`]),
    ];
    const condition = conditions.length > 1 ? `and ${conditions.join(' ')}` : conditions[0];
    return condition === undefined ? text : `{{- if ${condition} }}\n${text}{{- end }}\n`;
  });
  return texts.join('');
}

const mark = String.raw`MARK\((number|text) ([\w.]+)\)`;

function expressions(yaml: string): string {
  return (
    yaml
      // Arguments that depend on another value. A long line is folded.
      .replace(
        /^( *)- "?WHEN\(([\w.]+)\)\s+(MARK\(text\s+[\w.]+\):\d+|[^\s"]+)"?\n/gm,
        (_text, indent, path, word) =>
          `${indent}{{- if ${path} }}\n${indent}- ${/^\d/.test(word) ? `"${word}"` : word.replace(/\s+/g, ' ')}\n${indent}{{- end }}\n`,
      )
      // Addresses, such as 0.0.0.0:53.
      .replace(
        new RegExp(`"?${mark}:(\\d+)"?`, 'g'),
        (_text, _kind, path, port) => `{{ printf "%s:${port}" ${path} | quote }}`,
      )
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

const optionalFlags: ReadonlySet<string> = new Set(['--forward', '--stub-advertise']);

/** The contradictions that `valueProblems` names, said by Helm before anything is changed. */
const checks = contradictions
  .map(({ path, why, template }) => `{{- if ${template} }}{{ fail "${path}: ${why}" }}{{- end }}\n`)
  .join('');
