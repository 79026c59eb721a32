// Finds a service by what a person typed: its namespace where only the name was given, and near names of one that does not
// exist. Pure but for the list of names.

import { serviceExportType } from '../clusterset/kinds/service-export.ts';
import { serviceImportType } from '../clusterset/kinds/service-import.ts';
import type { Client } from '../kube/client/client.ts';
import { isForbidden, isNotFound } from '../kube/objects/api-error.ts';
import { notFoundError } from './exit-codes.ts';
import { parseServiceRef } from './with-home.ts';

const distanceMax = 2;
const suggestionsMax = 3;

/** Keys of all imports and exports of a home; empty where they may not be listed. */
export async function knownServices(home: Client): Promise<string[]> {
  const keys = new Set<string>();
  for (const type of [serviceImportType, serviceExportType]) {
    const { items } = await home.list(type).catch((error) => {
      if (isForbidden(error) || isNotFound(error)) return { items: [] };
      throw error;
    });
    for (const { metadata } of items) keys.add(`${metadata.namespace}/${metadata.name}`);
  }
  return [...keys].sort();
}

/** `NS/NAME`; or `NAME` in the namespace of the context, else in the only one that has it. */
export async function findService(
  home: Client,
  text: string,
  defaultNamespace: string,
): Promise<{ namespace: string; name: string }> {
  const ref = parseServiceRef(text, defaultNamespace);
  if (text.includes('/')) return ref;
  const found = namespacesOf(await knownServices(home), ref.name);
  if (found.length === 0 || found.includes(defaultNamespace)) return ref;
  if (found.length === 1) return { namespace: found[0]!, name: ref.name };
  const keys = found.map((namespace) => `${namespace}/${ref.name}`);
  throw notFoundError(`service ${text}: there are several; write ${keys.join(' or ')}`);
}

function namespacesOf(keys: readonly string[], name: string): string[] {
  return keys.filter((key) => key.endsWith(`/${name}`)).map((key) => key.slice(0, -name.length - 1));
}

/** `; did you mean shop/checkout?`, or empty. */
export function didYouMean(key: string, known: readonly string[]): string {
  const near = nearest(key, known);
  return near.length === 0 ? '' : `; did you mean ${near.join(' or ')}?`;
}

/** Those with the same name in another namespace first, then those that differ by few letters, there or elsewhere. */
function nearest(key: string, known: readonly string[]): string[] {
  const name = nameIn(key);
  const scored = known.flatMap((one) => {
    const distance = Math.min(editDistance(key, one), nameDistance(name, nameIn(one)));
    return Math.floor(distance) <= distanceMax ? [{ one, distance }] : [];
  });
  scored.sort((a, b) => a.distance - b.distance || (a.one < b.one ? -1 : 1));
  return scored.slice(0, suggestionsMax).map(({ one }) => one);
}

const nameIn = (key: string) => key.slice(key.indexOf('/') + 1);

/** In any namespace, behind those of its own. Short names are all like each other: half of the letters must be right. */
function nameDistance(name: string, other: string): number {
  const distance = editDistance(name, other);
  if (distance === 0) return 0;
  return distance * 2 < name.length ? distance + 0.5 : Number.POSITIVE_INFINITY;
}

/** Letters to add, remove or replace. */
function editDistance(from: string, to: string): number {
  if (Math.abs(from.length - to.length) > distanceMax) return Number.POSITIVE_INFINITY;
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let index = 1; index <= from.length; index += 1) {
    const next = [index];
    for (let column = 1; column <= to.length; column += 1) {
      const isSame = from[index - 1] === to[column - 1];
      next.push(Math.min(row[column]! + 1, next[column - 1]! + 1, row[column - 1]! + (isSame ? 0 : 1)));
    }
    row = next;
  }
  return row[to.length]!;
}
