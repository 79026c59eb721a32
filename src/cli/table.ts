// Tables for people: columns as wide as their widest cell, two spaces between, nothing at the end of a line.

import { printableLine } from '../base/text/printable.ts';
import { yaml } from '../base/yaml.ts';
import { usageError } from './exit-codes.ts';

export function formatTable(head: readonly string[], given: readonly (readonly string[])[]): string[] {
  const rows = given.map((row) => row.map(printableLine));
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  return [line(head), ...rows.map(line)];
}

export function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

const outputFormats = ['text', 'wide', 'json', 'yaml', 'name'] as const;
export type OutputFormat = (typeof outputFormats)[number];

export const outputOption = ['-o, --output <format>', 'text, wide, json, yaml or name', 'text'] as const;

export function parseOutput(text: string): OutputFormat {
  const format = outputFormats.find((one) => one === text);
  if (format === undefined) throw usageError(`-o ${JSON.stringify(text)}: write ${outputFormats.join(', ')}`);
  return format;
}

export interface Output {
  /** The whole answer, for programs. */
  readonly value: unknown;
  /** One name per row, for other commands. */
  readonly names: readonly string[];
  readonly text: (options: { readonly isWide: boolean }) => readonly string[];
}

/** The lines to print in the format that was asked for. */
export function formatOutput(format: OutputFormat, { value, names, text }: Output): readonly string[] {
  if (format === 'json') return [JSON.stringify(value, undefined, 2)];
  if (format === 'yaml') return [yaml().stringify(value).trimEnd()];
  if (format === 'name') return names;
  return text({ isWide: format === 'wide' });
}
