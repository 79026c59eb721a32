// Texts that occur again and again in parsed objects (kinds, label values, messages, times) are held once: JSON.parse makes
// each anew. Bounded: texts that have not been seen for a while are forgotten, and nothing but memory depends on it.

/** Of each of two generations. */
const textsMax = 8_192;
/** Longer ones are seldom equal. */
const lengthMax = 256;

export class SharedTexts {
  #young = new Map<string, string>();
  #old = new Map<string, string>();

  /** Changes the object itself: it has just been parsed, and nobody else holds it. */
  share<T extends object>(object: T): T {
    const pending: object[] = [object];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const fields = next as Record<string, unknown>;
      for (const key in fields) {
        const value = fields[key];
        if (typeof value === 'string') fields[key] = this.#one(value);
        else if (typeof value === 'object' && value !== null) pending.push(value);
      }
    }
    return object;
  }

  #one(text: string): string {
    if (text.length > lengthMax) return text;
    const young = this.#young.get(text);
    if (young !== undefined) return young;
    const known = this.#old.get(text) ?? text;
    if (this.#young.size === textsMax) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(known, known);
    return known;
  }
}

const ofAllCopies = new SharedTexts();

/** For objects that a copy keeps. They must be plain, and not known to anybody else yet. */
export function shareTexts<T extends object>(object: T): T {
  return ofAllCopies.share(object);
}
