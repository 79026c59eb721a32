// A small model of field ownership, made apart from the product: an object of named texts and of items with a key and a note,
// and for each field the managers that own it. It knows no schemas, trees of paths or lists of managers.

export interface Content {
  readonly texts: Readonly<Record<string, string>>;
  /** Note by key; an empty note is none. */
  readonly items: Readonly<Record<string, string>>;
}

export const noContent: Content = { texts: {}, items: {} };

/** `texts`, `text x`, `items`, `item 1`, `key 1`, `note 1`. */
type Field = string;

export class OwnershipModel {
  #fields = new Map<Field, { value: string; readonly owners: Set<string> }>();

  get content(): Content {
    const texts: Record<string, string> = {};
    const items: Record<string, string> = {};
    for (const [field, { value }] of this.#fields) {
      const [kind, name = ''] = field.split(' ');
      if (kind === 'text') texts[name] = value;
      if (kind === 'item') items[name] = this.#fields.get(`note ${name}`)?.value ?? '';
    }
    return { texts, items };
  }

  /** `field: managers`, sorted, without fields that nobody owns. */
  get owners(): string[] {
    return [...this.#fields]
      .filter(([, { owners }]) => owners.size > 0)
      .map(([field, { owners }]) => `${field}: ${[...owners].sort().join(' ')}`)
      .sort();
  }

  get isTracked(): boolean {
    return this.owners.length > 0;
  }

  update(writer: string, content: Content): void {
    const isTracked = this.isTracked;
    const wanted = fieldsOf(content, { hasContainers: true });
    for (const field of [...this.#fields.keys()]) if (!wanted.has(field)) this.#fields.delete(field);
    for (const [field, value] of wanted) {
      if (this.#fields.get(field)?.value === value) continue;
      this.#fields.set(field, { value, owners: new Set(isTracked ? [writer] : []) });
    }
  }

  /** The managers in conflict, or nothing if it was done. */
  apply(applier: string, content: Content, { isForced }: { readonly isForced: boolean }): string[] {
    const before = new Map(
      [...this.#fields].map(([field, { value, owners }]) => [field, { value, owners: new Set(owners) }]),
    );
    if (!this.isTracked) for (const { owners } of this.#fields.values()) owners.add('earlier');
    const wanted = fieldsOf(content, { hasContainers: false });
    const conflicts = new Set<string>();
    for (const [field, value] of wanted) {
      const known = this.#fields.get(field);
      if (known?.value === value) known.owners.add(applier);
      else {
        for (const owner of known?.owners ?? []) if (owner !== applier) conflicts.add(owner);
        this.#fields.set(field, { value, owners: new Set([applier]) });
      }
    }
    if (conflicts.size > 0 && !isForced) {
      this.#fields = before;
      return [...conflicts].sort();
    }
    this.#leave(applier, wanted);
    this.#keepContainers();
    return [];
  }

  /** What an applier applies no longer goes if nobody else owns it; an item takes its note along. */
  #leave(applier: string, wanted: ReadonlyMap<Field, string>): void {
    for (const [field, { owners }] of [...this.#fields]) {
      if (wanted.has(field) || !owners.delete(applier) || owners.size > 0) continue;
      this.#fields.delete(field);
      const [kind, name] = field.split(' ');
      if (kind === 'item') for (const part of ['key', 'note']) this.#fields.delete(`${part} ${name}`);
    }
  }

  #keepContainers(): void {
    for (const [container, kind] of [
      ['texts', 'text '],
      ['items', 'item '],
    ] as const) {
      const isThere = [...this.#fields.keys()].some((field) => field.startsWith(kind));
      if (!isThere) this.#fields.delete(container);
      else if (!this.#fields.has(container)) this.#fields.set(container, { value: '', owners: new Set() });
    }
  }
}

function fieldsOf(
  { texts, items }: Content,
  { hasContainers }: { readonly hasContainers: boolean },
): Map<Field, string> {
  const fields = new Map<Field, string>();
  if (hasContainers && Object.keys(texts).length > 0) fields.set('texts', '');
  if (hasContainers && Object.keys(items).length > 0) fields.set('items', '');
  for (const [name, text] of Object.entries(texts)) fields.set(`text ${name}`, text);
  for (const [key, note] of Object.entries(items)) {
    fields.set(`item ${key}`, '');
    fields.set(`key ${key}`, key);
    if (note !== '') fields.set(`note ${key}`, note);
  }
  return fields;
}
