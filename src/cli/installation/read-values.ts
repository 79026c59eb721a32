// The values of an installation as a person gives them: those of the last time or a file that replaces them, single values
// over it, and the defaults below all.

import { errorText } from '../../base/log.ts';
import { yaml } from '../../base/yaml.ts';
import { defaultValues, type Values } from '../../install/values.ts';
import { usageError } from '../exit-codes.ts';
import type { CliDeps } from '../with-home.ts';

export interface ValueFlags {
  readonly values?: string;
  readonly set: readonly string[];
  readonly rightsOnly?: boolean;
}

/** Only what a person gave, as a tree. */
export type GivenValues = Record<string, unknown>;

export async function readGiven(deps: CliDeps, flags: ValueFlags, before: GivenValues = {}): Promise<GivenValues> {
  const text = flags.values === undefined ? undefined : await deps.host.readText(flags.values);
  if (flags.values !== undefined && text === undefined) throw usageError(`--values ${flags.values}: no such file`);
  const given = text === undefined ? structuredClone(before) : parseValues(flags.values!, text);
  for (const entry of flags.set) setPath(given, entry);
  if (flags.rightsOnly) given['rightsOnly'] = true;
  return given;
}

/** With the defaults for everything that was not given. */
export function fillValues(given: GivenValues): Values {
  return mergeValues(defaultValues, given, []) as Values;
}

function parseValues(file: string, text: string): GivenValues {
  let parsed: unknown;
  try {
    parsed = yaml().parse(text) ?? {};
  } catch (error) {
    throw usageError(`--values ${file}: this is not YAML: ${errorText(error).split('\n')[0]}`);
  }
  if (typeof parsed !== 'object' || Array.isArray(parsed))
    throw usageError(`--values ${file}: expected a map, such as portolan install --print-values prints`);
  return parsed as GivenValues;
}

function setPath(into: GivenValues, entry: string): void {
  const at = entry.indexOf('=');
  if (at <= 0) throw usageError(`--set ${entry}: write PATH=VALUE, such as dns.clusterIP=10.96.0.20`);
  // A dot in a key is written \\. as for Helm.
  const path = entry
    .slice(0, at)
    .split(/(?<!\\)\./)
    .map((key) => key.replaceAll('\\.', '.'));
  let place = into;
  for (const key of path.slice(0, -1)) {
    place[key] ??= {};
    // A part that is no map is reported with its path when values are merged.
    if (typeof place[key] !== 'object') return;
    place = place[key] as Record<string, unknown>;
  }
  const text = entry.slice(at + 1);
  // A text as it stands: an id may consist of digits, and [::] is no list.
  place[path.at(-1)!] = typeof defaultAt(path) === 'string' ? text : (yaml().parse(text) ?? '');
}

function defaultAt(path: readonly string[]): unknown {
  return path.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], defaultValues);
}

/** The defaults with what was given over them; an unknown or wrongly typed value is refused with its path. */
function mergeValues(defaults: object, given: unknown, path: readonly string[]): object {
  const where = path.join('.') || 'the whole';
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw usageError(`values: ${where}: expected a map`);
  const known = defaults as Record<string, unknown>;
  const merged: Record<string, unknown> = { ...known };
  for (const [key, value] of Object.entries(given)) {
    const own = [...path, key];
    if (!Object.hasOwn(known, key)) {
      throw usageError(`values: ${own.join('.')}: no such value; there are ${Object.keys(known).join(', ')}`);
    }
    merged[key] = isSection(known[key]) ? mergeValues(known[key], value, own) : leafOf(known[key], value, own);
  }
  return merged;
}

/** Empty maps and lists are values of their own. */
function isSection(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
}

function leafOf(usual: unknown, value: unknown, path: readonly string[]): unknown {
  // People write cpu: 1.
  if (typeof usual === 'string' && typeof value === 'number') return String(value);
  const kind = kindOf(usual);
  if (kindOf(value) !== kind) throw usageError(`values: ${path.join('.')}: expected a ${kind}`);
  return value;
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'list';
  return typeof value === 'object' ? 'map' : typeof value;
}
