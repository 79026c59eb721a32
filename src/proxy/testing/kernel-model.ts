// A model of what the kernel does with nft text, written without the code that makes that text: transactions with nft's
// errors, and a packet's way through the chains. It knows the statements that the proxy's rules are made of and no others.

export type Way =
  | { readonly kind: 'backends' /** Share of each, adding up to 1. */; readonly shares: ReadonlyMap<string, number> }
  | { readonly kind: 'refused' }
  | { readonly kind: 'passed on' };

interface Tables {
  readonly maps: Map<string, Map<string, string>>;
  readonly chains: Map<string, string[]>;
}

interface To {
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
  readonly version: number;
}

export class KernelModel {
  #tables: Tables = { maps: new Map(), chains: new Map() };

  /** All of it or nothing. */
  apply(script: string): void {
    const next: Tables = {
      maps: new Map([...this.#tables.maps].map(([name, elements]) => [name, new Map(elements)])),
      chains: new Map([...this.#tables.chains].map(([name, rules]) => [name, [...rules]])),
    };
    for (const line of script.split('\n')) if (line !== '') execute(next, line);
    this.#tables = next;
  }

  elements(map: string): ReadonlyMap<string, string> {
    return this.#tables.maps.get(map) ?? new Map();
  }

  get chains(): readonly string[] {
    return [...this.#tables.chains.keys()];
  }

  /** The path of the first packet of a connection; with affinity, of a new client. */
  way({ ip, protocol, port }: { readonly ip: string; readonly protocol: string; readonly port: number }): Way {
    const version = ip.includes(':') ? 6 : 4;
    const verdict = this.elements(`svc${version}`).get(`${ip} . ${protocol} . ${port}`);
    if (verdict !== undefined) {
      const shares = this.#pick(verdict.replace(/^goto /, ''), { ip, protocol, port, version });
      if (shares.size > 0) return { kind: 'backends', shares };
    }
    const left = this.#tables.chains.get('left') ?? [];
    return left.some((rule) => isInside(ip, /daddr (\S+) goto refuse/.exec(rule)?.[1] ?? ''))
      ? { kind: 'refused' }
      : { kind: 'passed on' };
  }

  #pick(chain: string, to: To): Map<string, number> {
    const rules = this.#tables.chains.get(chain);
    if (rules === undefined) throw new Error(`goto ${chain}, which is not there`);
    const draw = rules.find((rule) => rule.startsWith('jump draw-'));
    if (draw !== undefined) return this.#pick(draw.replace('jump ', ''), to);
    const shares = new Map<string, number>();
    let left = 1;
    // `numgen random mod 1000000 < 900000 dnat …`, and at last one without a condition.
    for (const rule of rules.filter((text) => text.includes('numgen'))) {
      const [, sum, below, text = ''] = /^(?:numgen random mod (\d+) < (\d+) )?(.*)$/.exec(rule)!;
      const part = sum === undefined ? left : left * (Number(below) / Number(sum));
      left -= part;
      const slots = this.#slots(text, to);
      for (const backend of slots) shares.set(backend, (shares.get(backend) ?? 0) + part / slots.length);
    }
    return shares;
  }

  #slots(rule: string, to: To): string[] {
    const [, count, offset = '0'] = /numgen random mod (\d+)(?: offset (\d+))?/.exec(rule)!;
    return Array.from({ length: Number(count) }, (_, at) => {
      const index = Number(offset) + at;
      const backend = rule.includes('@affid')
        ? this.#byId(to, index)
        : this.elements(`${to.protocol}${to.version}`).get(`${to.ip} . ${to.port} . ${index}`);
      if (backend === undefined) throw new Error(`no backend ${index} of ${count} for ${to.ip}`);
      return backend;
    });
  }

  #byId(to: To, index: number): string | undefined {
    const id = this.elements(`affid${to.version}`).get(`${to.ip} . ${to.protocol} . ${to.port} . ${index}`);
    return this.elements(`aff${to.protocol}${to.version}`).get(`${to.ip} . ${to.port} . ${id}`);
  }
}

function execute(tables: Tables, line: string): void {
  const [, verb, kind, rest = ''] = /^(add|delete|flush) (\w+) inet portolan ?(.*)$/.exec(line) ?? [];
  if (verb === undefined) throw new Error(`no statement of the proxy: ${line}`);
  const [name = ''] = rest.split(' ');
  const body = rest.slice(name.length + 1);
  if (kind === 'table') return table(tables, verb);
  if (kind === 'map' || kind === 'set') return declared(tables.maps, verb, name, () => new Map());
  if (kind === 'chain') return chain(tables, verb, name);
  if (kind === 'rule') return rule(tables, name, body);
  for (const text of body.replace(/^\{ | \}$/g, '').split(', ')) element(found(tables.maps, name), verb, text);
}

function table(tables: Tables, verb: string): void {
  if (verb === 'flush') for (const rules of tables.chains.values()) rules.length = 0;
  if (verb !== 'delete') return;
  tables.maps.clear();
  tables.chains.clear();
}

function chain(tables: Tables, verb: string, name: string): void {
  const users =
    [...tables.maps.values()].some((elements) => [...elements.values()].includes(`goto ${name}`)) ||
    [...tables.chains.values()].flat().some((rule) => rule.split(/[ ,]/).includes(name));
  if (verb === 'delete' && users) throw new Error(`chain ${name} is in use`);
  declared(tables.chains, verb, name, () => []);
}

function rule(tables: Tables, name: string, body: string): void {
  for (const [, chain] of body.matchAll(/(?:goto|jump) ([\w.-]+)/g)) found(tables.chains, chain!);
  found(tables.chains, name).push(body);
}

function declared<T extends { clear(): void } | unknown[]>(
  all: Map<string, T>,
  verb: string,
  name: string,
  make: () => T,
): void {
  if (verb === 'add') return void all.set(name, all.get(name) ?? make());
  const known = found(all, name);
  if (verb === 'delete') all.delete(name);
  else if (Array.isArray(known)) known.length = 0;
  else (known as { clear(): void }).clear();
}

function element(elements: Map<string, string>, verb: string, text: string): void {
  const [key = '', value = ''] = text.split(' : ');
  if (verb === 'delete') {
    if (!elements.delete(key)) throw new Error(`delete of ${key}, which is not there`);
    return;
  }
  if (elements.has(key) && elements.get(key) !== value) throw new Error(`${key} is there with another value`);
  elements.set(key, value);
}

function found<T>(all: Map<string, T>, name: string): T {
  const value = all.get(name);
  if (value === undefined) throw new Error(`${name} is not there`);
  return value;
}

function isInside(ip: string, range: string): boolean {
  const [prefix = '', length] = range.split('/');
  if (ip.includes(':') !== prefix.includes(':')) return false;
  const bits = ip.includes(':') ? bitsOfV6 : bitsOfV4;
  return bits(ip).slice(0, Number(length)) === bits(prefix).slice(0, Number(length));
}

function bitsOfV4(ip: string): string {
  return ip
    .split('.')
    .map((part) => Number(part).toString(2).padStart(8, '0'))
    .join('');
}

function bitsOfV6(ip: string): string {
  const [head = '', tail = ''] = ip.split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':'));
  const missing = ip.includes('::') ? 8 - groups(head).length - groups(tail).length : 0;
  return [...groups(head), ...Array<string>(missing).fill('0'), ...groups(tail)]
    .map((group) => Number.parseInt(group, 16).toString(2).padStart(16, '0'))
    .join('');
}
