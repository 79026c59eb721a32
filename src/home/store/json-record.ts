// Objects are stored as JSON. One that is not would be found by a client in the middle of a list, which nobody could read
// then; so it is looked for when the rows are read, and the store is refused.

import { bufferOf } from './entry.ts';

export function canParse(value: Uint8Array): boolean {
  try {
    JSON.parse(bufferOf(value).toString('utf8'));
    return true;
  } catch {
    return false;
  }
}

export function brokenRecord(key: string, where: { readonly place: string; readonly remedy: string }): Error {
  return new Error(
    `the record ${JSON.stringify(key)} (${where.place}) is not JSON; restore a snapshot, or ${where.remedy}`,
  );
}
