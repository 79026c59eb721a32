// Messages of a protocol as a table of text, one line each, read as they are asked for. A field is
// `name number type`, with `list` or `map` before the type; keys of maps are strings. Fields are separated by `;`.
// An enum's line is `NAME number;…`.

const scalars = ['string', 'bytes', 'bool', 'uint32', 'int32', 'uint64', 'int64', 'double', 'float'] as const;

export type Scalar = (typeof scalars)[number];

export type FieldType =
  | { readonly kind: 'scalar'; readonly scalar: Scalar }
  | { readonly kind: 'enum'; readonly name: string }
  | { readonly kind: 'message'; readonly name: string };

export interface Field {
  readonly name: string;
  readonly number: number;
  readonly shape: 'single' | 'list' | 'map';
  readonly type: FieldType;
}

export interface Message {
  readonly name: string;
  readonly byName: ReadonlyMap<string, Field>;
  readonly byNumber: ReadonlyMap<number, Field>;
}

export interface EnumValues {
  readonly byName: ReadonlyMap<string, number>;
  readonly byNumber: ReadonlyMap<number, string>;
}

export interface SchemaTable {
  readonly messages: Readonly<Record<string, string>>;
  readonly enums: Readonly<Record<string, string>>;
}

export class Schema {
  readonly #table: SchemaTable;
  readonly #messages = new Map<string, Message>();
  readonly #enums = new Map<string, EnumValues>();

  constructor(table: SchemaTable) {
    this.#table = table;
  }

  message(name: string): Message | undefined {
    const known = this.#messages.get(name);
    if (known !== undefined || !Object.hasOwn(this.#table.messages, name)) return known;
    const fields = parts(this.#table.messages[name]!).map(parseField);
    const message: Message = {
      name,
      byName: new Map(fields.map((field) => [field.name, field])),
      byNumber: new Map(fields.map((field) => [field.number, field])),
    };
    this.#messages.set(name, message);
    return message;
  }

  enum(name: string): EnumValues {
    let known = this.#enums.get(name);
    if (known !== undefined) return known;
    const pairs = parts(this.#table.enums[name] ?? '').map((text) => text.split(' ') as [string, string]);
    known = {
      byName: new Map(pairs.map(([value, number]) => [value, Number(number)])),
      byNumber: new Map(pairs.map(([value, number]) => [Number(number), value])),
    };
    this.#enums.set(name, known);
    return known;
  }
}

function parts(line: string): string[] {
  return line === '' ? [] : line.split(';');
}

function parseField(text: string): Field {
  const [name, number, ...rest] = text.split(' ');
  const shape = rest[0] === 'list' || rest[0] === 'map' ? rest[0] : 'single';
  const type = shape === 'single' ? rest : rest.slice(1);
  return { name: name!, number: Number(number), shape, type: parseType(type) };
}

function parseType([first, second]: readonly string[]): FieldType {
  if (first === 'enum') return { kind: 'enum', name: second! };
  const scalar = scalars.find((one) => one === first);
  return scalar === undefined ? { kind: 'message', name: first! } : { kind: 'scalar', scalar };
}
