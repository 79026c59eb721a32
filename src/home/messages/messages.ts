// The messages of the built-in kinds, read from the generated table one by one as they are asked for: which fields a
// message has, their numbers in protobuf and their names and types in JSON. Schemas, the protobuf decoder and OpenAPI
// all stand on this and on nothing else.

import { atomicMessages, messages as lines, packages } from '../../gen/kubernetes-types.ts';

export type Scalar = 'string' | 'bytes' | 'bool' | 'int32' | 'int64' | 'double';

export interface Field {
  /** In JSON. For an inlined message, a name that JSON never shows. */
  readonly name: string;
  readonly number: number;
  readonly shape: 'single' | 'list' | 'map';
  /** Type of the value, of an item, or of a map's values; map keys are strings. */
  readonly type: { readonly scalar: Scalar } | { readonly message: string };
  /** The message's own fields stand in the parent's JSON object. */
  readonly isInline: boolean;
  readonly isRequired: boolean;
  /** Left out of JSON when it has its zero value, unless it is a pointer. */
  readonly isOmittedWhenEmpty: boolean;
  /** Absent and zero differ. */
  readonly isPointer: boolean;
  readonly listType: 'atomic' | 'set' | 'map' | undefined;
  readonly mapType: 'atomic' | 'granular' | undefined;
  /** The fields by which the items of a `map` list are told apart. */
  readonly listMapKeys: readonly string[];
  readonly patchMergeKey: string | undefined;
  readonly default: string | number | boolean | undefined;
}

export interface Message {
  /** Short name: `core.v1.Pod`, `meta.v1.ObjectMeta`, `resource.Quantity`. */
  readonly name: string;
  readonly fields: readonly Field[];
  readonly byNumber: ReadonlyMap<number, Field>;
  /** The fields it has in JSON: its own, and those of the messages inlined in it. */
  readonly flatFields: readonly Field[];
}

const atomic: ReadonlySet<string> = new Set(atomicMessages);

/** Whether one manager owns all fields of the message or none. */
export function isAtomicMessage(name: string): boolean {
  return atomic.has(name);
}

// A memo of constants: what it answers never depends on what was asked before.
const parsed = new Map<string, Message>();

export function messageOf(name: string): Message {
  let message = parsed.get(name);
  if (message === undefined) {
    message = parseMessage(name);
    parsed.set(name, message);
  }
  return message;
}

export function flatFields(name: string): readonly Field[] {
  return messageOf(name).flatFields;
}

export function isMessage(name: string): boolean {
  return Object.hasOwn(lines, name);
}

/** The short name of the message that carries a built-in kind: `apps/v1`, `Deployment` -> `apps.v1.Deployment`. */
export function messageOfKind(apiVersion: string, kind: string): string | undefined {
  const slash = apiVersion.indexOf('/');
  const group = slash < 0 ? 'core' : apiVersion.slice(0, slash).split('.')[0];
  const fromGroup = slash < 0 ? '' : apiVersion.slice(0, slash);
  if (!groups.has(fromGroup)) return undefined;
  const name = `${group}.${apiVersion.slice(slash + 1)}.${kind}`;
  return isMessage(name) ? name : undefined;
}

const groups: ReadonlySet<string> = new Set([
  '',
  'apps',
  'apiextensions.k8s.io',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'autoscaling',
  'coordination.k8s.io',
  'discovery.k8s.io',
  'events.k8s.io',
  'networking.k8s.io',
  'policy',
  'rbac.authorization.k8s.io',
]);

/** As protobuf knows it: `core.v1.Pod` -> `k8s.io.api.core.v1.Pod`. */
export function protobufName(name: string): string {
  const dot = name.lastIndexOf('.');
  return `${packages[name.slice(0, dot)]}${name.slice(dot)}`;
}

function parseMessage(name: string): Message {
  const line = lines[name];
  if (line === undefined) throw new Error(`message ${name} is not in src/gen/kubernetes-types.ts`);
  const home = name.slice(0, name.lastIndexOf('.'));
  const fields = line === '' ? [] : line.split(';').map((text) => parseField(text, home));
  const flat = fields.flatMap((field) =>
    field.isInline && 'message' in field.type ? flatFields(field.type.message) : [field],
  );
  return { name, fields, byNumber: new Map(fields.map((field) => [field.number, field])), flatFields: flat };
}

// `name number type word…`: a type is a scalar or a message, `.Name` one of the same package, `[]type` a list,
// `map<type>` a map from strings.
function parseField(text: string, home: string): Field {
  const [name = '', number = '', type = '', ...words] = text.split(' ');
  const valuesOf = (word: string) =>
    words.filter((each) => each.startsWith(`${word}=`)).map((each) => each.slice(word.length + 1));
  const [defaultText] = valuesOf('default');
  return {
    name,
    number: Number(number),
    shape: type.startsWith('[]') ? 'list' : type.startsWith('map<') ? 'map' : 'single',
    type: parseType(type.replace(/^\[\]|^map<|>$/g, ''), home),
    isInline: words.includes('inline'),
    isRequired: words.includes('required'),
    isOmittedWhenEmpty: words.includes('omitempty'),
    isPointer: words.includes('pointer'),
    listType: valuesOf('list')[0] as Field['listType'],
    mapType: valuesOf('map')[0] as Field['mapType'],
    listMapKeys: valuesOf('key'),
    patchMergeKey: valuesOf('merge')[0],
    default: defaultText === undefined ? undefined : JSON.parse(defaultText),
  };
}

function parseType(type: string, home: string): Field['type'] {
  if (type.startsWith('.')) return { message: home + type };
  return type.includes('.') ? { message: type } : { scalar: type as Scalar };
}
