// Static records and rules of a resolver, from files and from a ConfigMap of the home: read at the start, and again while it
// runs. What cannot be used leaves the earlier content of that source, and is said.

import type { Host } from '../../base/host.ts';
import { errorText, type Log } from '../../base/log.ts';
import { repeat } from '../../base/repeat.ts';
import { inSteps, type Pieces, Turns } from '../../base/turns.ts';
import type { World } from '../../base/world.ts';
import type { NameTable } from '../../catalog/names/name-table.ts';
import { fileOf } from '../../cli/roles/dns-server-flags.ts';
import type { LocalConfig } from '../../dns/handlers/local.ts';
import { type LocalRecords, mergeRecords, readHosts, readRecords } from '../../dns/local/records.ts';
import { checkRules, type LocalRule, parseRules } from '../../dns/local/rules.ts';
import { LocalTable } from '../../dns/local/table.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer } from '../../kube/controller/informer.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';

export interface LocalNamesOptions {
  readonly world: World;
  readonly log: Log;
  readonly host: Host;
  readonly home: Client;
  readonly hosts: readonly string[];
  readonly records: readonly string[];
  readonly rules: readonly string[];
  /** Its keys are `hosts`, `records` and `rules`. */
  readonly configMap: string | undefined;
  readonly ttlSeconds: number;
}

type Kind = 'hosts' | 'records' | 'rules';

interface Content {
  readonly records: LocalRecords;
  readonly rules: readonly LocalRule[];
}

interface Source {
  readonly kind: Kind;
  readonly where: string;
  read(): Promise<string | undefined>;
  /** As it was last read, good or not. */
  last: string;
  /** Why that cannot be used. */
  lastProblem: string;
  /** The content in use: parsed anew when another source changes, because records as objects take ten times as much. */
  good: string;
  /** Why it cannot be read or used at present. */
  problem: string;
}

const readAgainMs = 5_000;
/** Those of addresses count too. */
const namesMax = 300_000;

export class LocalNames {
  readonly #options: LocalNamesOptions;
  readonly #table = new LocalTable();
  readonly #turns: Turns;
  readonly #sources: readonly Source[];
  readonly #stops: (() => void)[] = [];
  #configMap: ConfigMap | undefined;
  #rules: readonly LocalRule[] = [];
  /** Why sources that are good by themselves cannot be used together. */
  #problem = '';
  #looking: Promise<void> = Promise.resolve();

  constructor(options: LocalNamesOptions) {
    this.#options = options;
    this.#turns = new Turns(options.world);
    const { hosts, records, rules, configMap: name } = options;
    this.#sources = [
      ...hosts.map((path) => this.#fileSource('hosts', path)),
      ...records.map((path) => this.#fileSource('records', path)),
      ...rules.map((path) => this.#fileSource('rules', path)),
      ...(name === undefined
        ? []
        : (['hosts', 'records', 'rules'] as const).map((kind) => this.#keySource(kind, name))),
    ];
  }

  get records(): NameTable {
    return this.#table.table;
  }

  get local(): LocalConfig {
    return { ttlSeconds: this.#options.ttlSeconds, rules: this.#rules };
  }

  /** What is wrong with sources whose earlier content is in use; empty if nothing is. */
  problems(): string[] {
    return [...this.#sources.map(({ problem }) => problem), this.#problem].filter((text) => text !== '');
  }

  /** For its status. */
  status() {
    return { names: this.records.size, rules: this.#rules.length, problems: this.problems() };
  }

  /** A file that cannot be used is an error at the start. */
  async read(): Promise<void> {
    await this.#look();
    const [problem] = this.problems();
    if (problem !== undefined) throw new Error(problem);
  }

  /** From now on `onRules` is told of other rules; records change in their table. */
  follow(onRules: (local: LocalConfig) => void): void {
    const { world, configMap: name } = this.#options;
    const look = () => (this.#looking = this.#looking.then(() => this.#look(onRules)));
    this.#stops.push(repeat(world.timers, { everyMs: readAgainMs }, look));
    if (name === undefined) return;
    const informer = createInformer<ConfigMap>({
      ...{ ...this.#options, client: this.#options.home, type: configMapType, namespace: systemNamespace },
      fieldSelector: `metadata.name=${name}`,
    });
    informer.on((_key, next) => {
      this.#configMap = next;
      void look();
    });
    informer.start();
    this.#stops.push(() => informer.stop());
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops) stop();
    await this.#looking;
  }

  async #look(onRules?: (local: LocalConfig) => void): Promise<void> {
    const changed = new Map<Source, Content>();
    for (const source of this.#sources) {
      const content = await this.#readAgain(source);
      if (content) changed.set(source, content);
    }
    if (changed.size === 0) return;
    const before = JSON.stringify(this.#rules);
    try {
      await this.#useAll(changed);
      this.#problem = '';
    } catch (error) {
      this.#problem = errorText(error);
      this.#options.log.warn('records and rules: the earlier ones stay', { error: this.#problem });
      return;
    }
    const { log } = this.#options;
    log.info('records and rules are in use', { names: this.records.size, rules: this.#rules.length });
    if (JSON.stringify(this.#rules) !== before) onRules?.(this.local);
  }

  /** Its content, if that is another one and can be used. */
  async #readAgain(source: Source): Promise<Content | undefined> {
    try {
      const text = (await source.read()) ?? '';
      source.problem = source.lastProblem;
      if (text === source.last) return undefined;
      source.last = text;
      const content = await this.#parse(source, text).catch((error: unknown) => {
        source.lastProblem = errorText(error);
        throw error;
      });
      source.good = text;
      source.problem = source.lastProblem = '';
      return content;
    } catch (error) {
      const problem = errorText(error);
      if (problem !== source.problem) this.#options.log.warn('the earlier content stays', { error: problem });
      source.problem = problem;
      return undefined;
    }
  }

  async #parse({ kind, where }: Source, text: string): Promise<Content> {
    if (kind === 'rules') return { records: new Map(), rules: parseRules(text, where) };
    return { rules: [], records: await this.#inPieces((kind === 'hosts' ? readHosts : readRecords)(text, where)) };
  }

  async #useAll(changed: ReadonlyMap<Source, Content>): Promise<void> {
    const contents: Content[] = [];
    for (const source of this.#sources) contents.push(changed.get(source) ?? (await this.#parse(source, source.good)));
    const records = await this.#inPieces(mergeRecords(contents.map((content) => content.records)));
    if (records.size > namesMax) throw new Error(`${records.size} static names: at most ${namesMax} are served`);
    const rules = contents.flatMap((content) => content.rules);
    checkRules(rules, 'all rules together');
    await this.#inPieces(this.#table.replace(records));
    this.#rules = rules;
  }

  #inPieces<T>(pieces: Pieces<T>): Promise<T> {
    return inSteps(pieces, () => this.#turns.next());
  }

  #fileSource(kind: Kind, path: string): Source {
    const { host } = this.#options;
    const flag = kind === 'rules' ? '--name-rules' : `--${kind}`;
    return { ...emptySource, kind, where: `${flag} ${path}`, read: () => fileOf(host, flag, path) };
  }

  /** A key that is not there has no names. */
  #keySource(kind: Kind, name: string): Source {
    const where = `ConfigMap ${systemNamespace}/${name} key ${kind}`;
    return { ...emptySource, kind, where, read: async () => this.#configMap?.data?.[kind] };
  }
}

const emptySource = { last: '', lastProblem: '', good: '', problem: '' };
