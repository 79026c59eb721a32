// Reads a Corefile as far as it must: which zones its server blocks have, where they forward to, and the block that is ours
// between two marks. Writes that block and takes it out again; all other text stays as it is. Pure.

export interface ServerBlock {
  /** Such as `dns://clusterset.local:53`. */
  readonly keys: readonly string[];
  /** Where its queries are forwarded, as written; empty if they are not. */
  readonly forwards: readonly string[];
  /** Names of its plugins, each once. */
  readonly plugins: readonly string[];
}

const begin = '# begin portolan: written by portolan coredns, which takes it out again with --remove';
const beginPattern = /^# begin portolan\b.*$/m;
const end = '# end portolan';

/** A text that is no Corefile as CoreDNS reads it has no blocks. */
export function serverBlocks(text: string): ServerBlock[] {
  const blocks: ServerBlock[] = [];
  let depth = 0;
  let keys: string[] = [];
  let lines: string[][] = [];
  for (const words of wordsOf(text)) {
    if (depth === 0) {
      const opens = words.at(-1) === '{';
      keys.push(
        ...(opens ? words.slice(0, -1) : words).flatMap((word) => word.split(',')).filter((word) => word !== ''),
      );
      if (opens) {
        depth = 1;
        lines = [];
      } else if (!words.at(-1)!.endsWith(',')) keys = [];
      continue;
    }
    if (words[0] === '}') {
      depth--;
      if (depth === 0) {
        const isSnippet = keys.length === 1 && keys[0]!.startsWith('(');
        if (!isSnippet && keys.length > 0) blocks.push(blockOf(keys, lines));
        keys = [];
      }
      continue;
    }
    if (depth === 1) lines.push(words);
    if (words.at(-1) === '{') depth++;
  }
  return blocks;
}

function* wordsOf(text: string): Generator<string[]> {
  for (const line of text.split('\n')) {
    const words = line.match(/"(?:[^"\\]|\\.)*"|\S+/g) ?? [];
    const comment = words.findIndex((word) => word.startsWith('#'));
    const said = comment < 0 ? words : words.slice(0, comment);
    if (said.length > 0) yield [...said];
  }
}

function blockOf(keys: readonly string[], lines: readonly (readonly string[])[]): ServerBlock {
  const forwards = lines
    .filter(([plugin]) => plugin === 'forward')
    .flatMap(([, , ...to]) => to.filter((word) => word !== '{'));
  return { keys: keys.map(normalKey), forwards, plugins: [...new Set(lines.map(([plugin]) => plugin!))] };
}

/** CoreDNS does not start with one key in two blocks. */
function normalKey(key: string): string {
  const [, scheme = 'dns', rest = ''] = /^(?:([a-z+]+):\/\/)?(.*)$/.exec(key.toLowerCase())!;
  const [, zone = '', port = scheme === 'dns' ? '53' : ''] = /^(.*?)(?::(\d+))?$/.exec(rest)!;
  return `${scheme}://${zone === '.' || zone === '' ? '.' : zone.replace(/\.$/, '')}:${port}`;
}

export function zoneOf(key: string): string {
  return key.replace(/^[^/]*\/\//, '').replace(/:\d*$/, '');
}

/** The port on which the server for all names listens; 53 where there is none. */
export function mainPort(text: string): string {
  const main = serverBlocks(text)
    .flatMap(({ keys }) => keys)
    .find((key) => key.startsWith('dns://.:'));
  return main?.replace(/^.*:/, '') ?? '53';
}

/** Between the marks; undefined if there is none. Throws if the marks are damaged. */
export function markedBlock(text: string): string | undefined {
  const from = beginPattern.exec(text);
  const to = text.indexOf(`\n${end}`);
  if (from === null && to < 0 && !text.startsWith(end)) return undefined;
  const second = from === null ? -1 : text.slice(from.index + from[0].length).search(beginPattern);
  if (from === null || to < from.index || second >= 0 || text.indexOf(`\n${end}`, to + 1) >= 0)
    throw new Error(
      `the lines "# begin portolan" and "${end}" of the Corefile are not a pair any more; correct them by hand`,
    );
  return text.slice(from.index + from[0].length + 1, to + 1);
}

/** With our block in place of the one that is there, or behind everything else. */
export function withMarked(text: string, block: string): string {
  const present = markedBlock(text);
  const marked = `${begin}\n${block}${end}\n`;
  if (present === undefined) return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${marked}`;
  return cut(text, marked);
}

export function withoutMarked(text: string): string {
  return markedBlock(text) === undefined ? text : cut(text, '');
}

function cut(text: string, replacement: string): string {
  const from = beginPattern.exec(text)!.index;
  const to = text.indexOf(`\n${end}`) + 1 + end.length;
  return text.slice(0, from) + replacement + text.slice(to).replace(/^\n/, '');
}
