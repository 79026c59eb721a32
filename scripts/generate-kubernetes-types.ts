// Writes src/gen/kubernetes-types.ts: names, numbers and types of the fields of every message that our built-in kinds
// use, read from the Kubernetes Go modules. Facts only, no text. Needs Go and the Go module proxy; nothing else does.
// Run: node scripts/generate-kubernetes-types.ts

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const version = 'v0.37.2';

/** Short name of a package in the table, the module it lies in, and its folder there. */
const packages = [
  ['core.v1', 'k8s.io/api', 'core/v1'],
  ['apps.v1', 'k8s.io/api', 'apps/v1'],
  ['authentication.v1', 'k8s.io/api', 'authentication/v1'],
  ['authorization.v1', 'k8s.io/api', 'authorization/v1'],
  ['autoscaling.v1', 'k8s.io/api', 'autoscaling/v1'],
  ['coordination.v1', 'k8s.io/api', 'coordination/v1'],
  ['discovery.v1', 'k8s.io/api', 'discovery/v1'],
  ['events.v1', 'k8s.io/api', 'events/v1'],
  ['networking.v1', 'k8s.io/api', 'networking/v1'],
  ['policy.v1', 'k8s.io/api', 'policy/v1'],
  ['rbac.v1', 'k8s.io/api', 'rbac/v1'],
  ['apiextensions.v1', 'k8s.io/apiextensions-apiserver', 'pkg/apis/apiextensions/v1'],
  ['meta.v1', 'k8s.io/apimachinery', 'pkg/apis/meta/v1'],
  ['resource', 'k8s.io/apimachinery', 'pkg/api/resource'],
  ['intstr', 'k8s.io/apimachinery', 'pkg/util/intstr'],
  ['runtime', 'k8s.io/apimachinery', 'pkg/runtime'],
] as const;

const roots = [
  'core.v1: Namespace Service Pod Node Secret ConfigMap Event ServiceAccount ResourceQuota PodTemplate ReplicationController',
  'apps.v1: DaemonSet Deployment ReplicaSet StatefulSet',
  'authentication.v1: TokenRequest TokenReview SelfSubjectReview',
  'authorization.v1: SelfSubjectAccessReview SubjectAccessReview LocalSubjectAccessReview SelfSubjectRulesReview',
  'autoscaling.v1: Scale',
  'coordination.v1: Lease',
  'discovery.v1: EndpointSlice',
  'events.v1: Event',
  'networking.v1: Ingress IngressClass NetworkPolicy',
  'policy.v1: PodDisruptionBudget',
  'rbac.v1: Role ClusterRole RoleBinding ClusterRoleBinding',
  'apiextensions.v1: CustomResourceDefinition',
  'meta.v1: ListMeta DeleteOptions Status ObjectMeta Time MicroTime Duration',
  'resource: Quantity',
  'intstr: IntOrString',
  'runtime: RawExtension',
];

interface Field {
  name: string;
  number: number;
  /** `string`, `core.v1.Pod`, `[]string`, `map<bytes>`. */
  type: string;
  markers: string[];
}

interface Tag {
  json: string;
  isPointer: boolean;
  patchMergeKey: string | undefined;
}

function main(): void {
  const messages = new Map<string, Field[]>();
  const atomic = new Set<string>();
  const tags = new Map<string, Tag>();
  for (const [short, module, folder] of packages) {
    const directory = join(moduleDirectory(module), folder);
    readProto(short, readFileSync(join(directory, 'generated.proto'), 'utf8'), { messages, atomic });
    for (const file of readdirSync(directory).filter(isGoSource)) {
      readGo(short, readFileSync(join(directory, file), 'utf8'), tags);
    }
  }
  const names = reachable(messages);
  const count = names.reduce((sum, name) => sum + messages.get(name)!.length, 0);
  const atomicNames = names.filter((name) => atomic.has(name));
  writeFileSync('src/gen/kubernetes-types.ts', printTable(names, { messages, tags, atomicNames }));
  console.log(`${names.length} messages, ${count} fields`);
}

function moduleDirectory(module: string): string {
  const answer = execFileSync('go', ['mod', 'download', '-json', `${module}@${version}`], { encoding: 'utf8' });
  return (JSON.parse(answer) as { Dir: string }).Dir;
}

function isGoSource(file: string): boolean {
  return file.endsWith('.go') && !/generated|_test\.go$/.test(file);
}

function readProto(
  short: string,
  text: string,
  { messages, atomic }: { messages: Map<string, Field[]>; atomic: Set<string> },
): void {
  let fields: Field[] = [];
  let markers: string[] = [];
  for (const line of text.split('\n')) {
    const message = /^message (\w+) \{/.exec(line);
    const marker = /^\s*\/\/ \+(\S+)/.exec(line);
    const field = /^ {2}(?:(optional|repeated) (\S+)|map<string, (\S+)>) (\w+) = (\d+);/.exec(line);
    if (message) messages.set(`${short}.${message[1]}`, (fields = []));
    if (message && markers.includes('structType=atomic')) atomic.add(`${short}.${message[1]}`);
    if (marker) markers.push(marker[1]!);
    else if (field) {
      const bare = shorten(short, field[2] ?? field[3]!);
      const type = field[3] ? `map<${bare}>` : field[1] === 'repeated' ? `[]${bare}` : bare;
      fields.push({ name: field[4]!, number: Number(field[5]), type, markers });
    }
    if (!/^\s*\/\//.test(line)) markers = [];
  }
}

function shorten(current: string, type: string): string {
  if (/^(string|bytes|bool|int32|int64|double|uint32|uint64|float)$/.test(type)) return type;
  if (!type.startsWith('.')) return `${current}.${type}`;
  for (const [short, module, folder] of packages) {
    const prefix = `.${module}/${folder}.`.replaceAll('/', '.').replaceAll('-', '_');
    if (type.startsWith(prefix) && !type.slice(prefix.length).includes('.'))
      return short + type.slice(prefix.length - 1);
  }
  throw new Error(`message ${type} is in none of the packages listed in this script`);
}

function readGo(short: string, text: string, tags: Map<string, Tag>): void {
  let struct = '';
  for (const line of text.split('\n')) {
    const start = /^type (\w+) struct \{/.exec(line);
    if (start) struct = start[1]!;
    const json = /`.*json:"([^"]*)"/.exec(line)?.[1];
    const number = /protobuf:"\w+,(\d+),/.exec(line)?.[1];
    if (json === undefined || number === undefined || line.trim().startsWith('//')) continue;
    tags.set(`${short}.${struct}.${number}`, {
      json,
      isPointer: /^\t\w*\s*\*/.test(line),
      patchMergeKey: /patchMergeKey:"(\w+)"/.exec(line)?.[1],
    });
  }
}

function reachable(messages: Map<string, Field[]>): string[] {
  const found = new Set<string>();
  const visit = (name: string) => {
    if (found.has(name) || !messages.has(name)) return;
    found.add(name);
    for (const field of messages.get(name)!) visit(field.type.replace(/^\[\]|^map<|>$/g, ''));
  };
  for (const root of roots) {
    const [short, names] = root.split(': ');
    for (const name of names!.split(' ')) visit(`${short}.${name}`);
  }
  return [...found].sort();
}

interface Table {
  readonly messages: Map<string, Field[]>;
  readonly tags: Map<string, Tag>;
  /** Messages of which one manager owns all fields or none. */
  readonly atomicNames: readonly string[];
}

function printTable(names: string[], { messages, tags, atomicNames }: Table): string {
  const lines = names.map((name) => `  '${name}': '${printMessage(name, messages.get(name)!, tags)}',`);
  const prefixes = packages.map(([short, module, folder]) => {
    const full = `${module}/${folder}`.replaceAll('/', '.').replaceAll('-', '_');
    return `  '${short}': '${full}',`;
  });
  return [
    `// Generated by scripts/generate-kubernetes-types.ts from the Kubernetes Go modules ${version}; do not edit.`,
    '// The form of a line is described, and read, in src/home/messages/messages.ts.',
    '',
    '/** From the short name of a package, as the messages below use it, to its name in protobuf. */',
    'export const packages: Readonly<Record<string, string>> = {',
    ...prefixes,
    '};',
    '',
    'export const messages: Readonly<Record<string, string>> = {',
    ...lines,
    '};',
    '',
    '/** Messages that are applied as a whole: one manager owns all their fields. */',
    'export const atomicMessages: readonly string[] = [',
    ...atomicNames.map((name) => `  '${name}',`),
    '];',
    '',
  ].join('\n');
}

/** One field: `name number type`, then a word for each thing worth knowing of it. Fields are separated by `;`. */
function printMessage(message: string, fields: Field[], tags: Map<string, Tag>): string {
  const short = message.slice(0, message.lastIndexOf('.'));
  return fields.map((field) => printField(short, field, tags.get(`${message}.${field.number}`))).join(';');
}

function printField(short: string, field: Field, tag: Tag | undefined): string {
  const [jsonName, ...options] = tag?.json.split(',') ?? [field.name];
  const has = (marker: string) => field.markers.includes(marker);
  const words = [jsonName || field.name, String(field.number), relative(short, field.type)];
  const hasOmitEmpty = options.includes('omitempty') || options.includes('omitzero');
  // An embedded struct without a name of its own: its fields are the parent's in JSON.
  if (tag !== undefined && jsonName === '') words.push('inline');
  else if (!hasOmitEmpty && !has('optional')) words.push('required');
  if (hasOmitEmpty) words.push('omitempty');
  if (tag?.isPointer) words.push('pointer');
  const valuesOf = (marker: string) =>
    field.markers.filter((text) => text.startsWith(`${marker}=`)).map((text) => text.slice(marker.length + 1));
  for (const listType of valuesOf('listType')) words.push(`list=${listType}`);
  for (const mapType of [...valuesOf('mapType'), ...valuesOf('structType')]) words.push(`map=${mapType}`);
  for (const key of valuesOf('listMapKey')) words.push(`key=${key}`);
  if (tag?.patchMergeKey) words.push(`merge=${tag.patchMergeKey}`);
  for (const value of valuesOf('default')) if (isScalar(value)) words.push(`default=${value}`);
  return words.join(' ');
}

function relative(short: string, type: string): string {
  return type.replace(new RegExp(`^((?:\\[\\]|map<)?)${short.replaceAll('.', '\\.')}\\.(?=\\w+>?$)`), '$1.');
}

function isScalar(text: string): boolean {
  try {
    return typeof JSON.parse(text) !== 'object' && text !== '""';
  } catch {
    return false;
  }
}

main();
