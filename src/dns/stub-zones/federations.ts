// The endpoint by which a federation tells this cluster's resolver where its nameservers are: POST, GET and DELETE of
// /federations/<name>. It reaches the stub zones and nothing else, trusts only listed certificates, and writes to
// disk before it accepts.

import { isIP } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { isDnsLabel, isDnsSubdomain } from '../../base/dns/labels.ts';
import { tryEncodeName } from '../../base/dns/name.ts';
import type { TsigKey } from '../../base/dns/tsig.ts';
import type { HttpRequest, HttpResponse } from '../../base/http.ts';
import { errorText, type Log } from '../../base/log.ts';
import type { Disk } from '../../base/world.ts';
import { parseServerAddress, type StubStore, type StubZone, type TlsClient } from '../config/config.ts';

export interface FederationsOptions {
  /** Posted federations survive a restart in it. */
  readonly store: StubStore;
  /** The name of that place, for messages. */
  readonly path: string;
  readonly log: Log;
  /** Certificate identities that may post. */
  readonly allowed: readonly string[];
  /** Besides those: whether this identity may post for this federation. */
  readonly mayPost?: ((identity: string, federation: string) => boolean) | undefined;
  /** `<name>.svc.<suffix>` becomes the stub zone, unless the post names another suffix. */
  readonly suffix?: string;
  /** Zones that are closed to posts: the cluster's own. */
  readonly reserved?: () => readonly string[];
  /** Keys that a post may name. */
  readonly keys?: readonly TsigKey[];
  /** By zone: the name of the key that signs, unless the post names another. */
  readonly keyOfZone?: ReadonlyMap<string, string>;
  /** By zone: its servers are asked over TLS, as this client. */
  readonly tlsOfZone?: ReadonlyMap<string, TlsClient>;
  /** Given at start; a post of the same federation replaces it until it is deleted. */
  readonly fixed?: readonly StubZone[];
  readonly onChange: (zones: readonly StubZone[]) => void;
}

interface Posted {
  readonly nameservers: readonly string[];
  readonly suffix?: string;
  /** Name of the key that signs what is sent there. */
  readonly key?: string;
}

const nameserversMax = 16;
const bodyBytesMax = 16_384;
const prefix = '/federations';

export class Federations {
  readonly #options: FederationsOptions;
  #posted: ReadonlyMap<string, Posted> = new Map();
  /** Writes happen one after the other, in the order of the requests. */
  #writing: Promise<unknown> = Promise.resolve();

  constructor(options: FederationsOptions) {
    this.#options = options;
  }

  async load(): Promise<void> {
    const { store } = this.#options;
    const bytes = await store.read();
    if (bytes && store.onChange !== undefined) this.#adopt(Buffer.from(bytes).toString('utf8'));
    else if (bytes) {
      try {
        this.#posted = readPosted(Buffer.from(bytes).toString('utf8'));
        for (const [name, posted] of this.#posted) this.#keyFor(this.#zoneOf(name, posted.suffix), posted);
      } catch (cause) {
        throw new Error(`stub zones in ${this.#options.path} cannot be read; mend or remove the file`, { cause });
      }
    }
    this.#options.onChange(this.zones());
    store.onChange?.((text) => this.#adopt(text));
  }

  /** Takes over the zones that another resolver of the cluster was given. */
  #adopt(text: string): void {
    try {
      const posted = text === '' ? new Map<string, Posted>() : readPosted(text);
      if (isDeepStrictEqual(posted, this.#posted)) return;
      for (const [name, said] of posted) this.#keyFor(this.#zoneOf(name, said.suffix), said);
      this.#posted = posted;
      this.#options.onChange(this.zones());
    } catch (error) {
      this.#options.log.warn('stub zones of another resolver cannot be read', { error: errorText(error) });
    }
  }

  zones(): StubZone[] {
    const { fixed = [] } = this.#options;
    const posted = [...this.#posted].map(([name, said]): StubZone => {
      const zone = this.#zoneOf(name, said.suffix);
      const key = this.#keyFor(zone, said);
      const tls = this.#options.tlsOfZone?.get(zone);
      const secured = { ...(key ? { key } : {}), ...(tls ? { tls } : {}) };
      return { zone, nameservers: said.nameservers, sendsSource: true, ...secured };
    });
    const isPosted = (zone: string) => posted.some((other) => other.zone === zone);
    return [...fixed.filter(({ zone }) => !isPosted(zone)), ...posted];
  }

  /** `identity` is the name in a certificate the authority signed; empty for other clients. */
  async handle(request: HttpRequest, identity: string): Promise<HttpResponse> {
    if (identity === '') return reply(401, "want a client certificate that this resolver's authority signed");
    const [path] = request.path.split('?', 1) as [string];
    if (!this.#isAllowed(identity, path)) {
      this.#options.log.warn('stub zone refused', { identity, path: request.path });
      return reply(403, `${identity} may not set stub zones here`);
    }
    if (path === prefix && request.method === 'GET')
      return json(200, { federations: Object.fromEntries(this.#posted) });
    const name = path.startsWith(`${prefix}/`) ? path.slice(prefix.length + 1) : '';
    if (name === '' || isDnsLabel(name).length > 0) return reply(404, 'want /federations/<name>, a DNS label');
    if (request.method === 'GET') return this.#get(name);
    if (request.method === 'POST' || request.method === 'PUT') return this.#post(name, request.body, identity);
    if (request.method === 'DELETE') return this.#delete(name, identity);
    return reply(405, 'want GET, POST or DELETE', { allow: 'GET, POST, DELETE' });
  }

  #isAllowed(identity: string, path: string): boolean {
    if (this.#options.allowed.includes(identity)) return true;
    return this.#options.mayPost?.(identity, path.slice(prefix.length + 1)) ?? false;
  }

  #get(name: string): HttpResponse {
    const posted = this.#posted.get(name);
    if (!posted) return reply(404, `federation ${name} is not known here`);
    return json(200, posted);
  }

  /** The key that signs what goes to the servers of this zone. */
  #keyFor(zone: string, posted: Posted): TsigKey | undefined {
    const { keys = [], keyOfZone } = this.#options;
    const name = posted.key ?? keyOfZone?.get(zone);
    if (name === undefined) return undefined;
    const key = keys.find((known) => known.name === name);
    if (!key) throw new Error(`${zone}: key ${name} is not known here; give it with --tsig-key FILE`);
    return key;
  }

  #zoneOf(name: string, suffix: string | undefined): string {
    return `${name}.svc.${suffix ?? this.#options.suffix ?? 'federation'}`;
  }

  /** The zone it lies in that is not the federation's to take; undefined if there is none. */
  #reservedAround(zone: string): string | undefined {
    const { fixed = [] } = this.#options;
    const reserved = this.#options.reserved?.() ?? [];
    const others = fixed.filter(({ sendsSource }) => !sendsSource).map((other) => other.zone);
    return [...reserved, ...others].find((other) => zone === other || zone.endsWith(`.${other}`));
  }

  async #post(name: string, body: Uint8Array | undefined, identity: string): Promise<HttpResponse> {
    if ((body?.length ?? 0) > bodyBytesMax) return reply(413, `want at most ${bodyBytesMax} bytes`);
    const posted = postedIn(Buffer.from(body ?? []).toString('utf8'));
    if (typeof posted === 'string') return reply(400, posted);
    const zone = this.#zoneOf(name, posted.suffix);
    if (!tryEncodeName(zone)) return reply(400, `${zone} is no domain name: want shorter labels in "suffix"`);
    const reserved = this.#reservedAround(zone);
    if (reserved !== undefined) return reply(403, `${zone} lies in ${reserved}, which no federation may take`);
    try {
      this.#keyFor(zone, posted);
    } catch (error) {
      return reply(400, (error as Error).message);
    }
    await this.#change(name, posted);
    this.#options.log.info('stub zone set', { zone, ...posted, identity });
    return json(200, posted);
  }

  async #delete(name: string, identity: string): Promise<HttpResponse> {
    if (!this.#posted.has(name)) return reply(404, `federation ${name} is not known here`);
    await this.#change(name, undefined);
    this.#options.log.info('stub zone removed', { federation: name, identity });
    return json(200, {});
  }

  #change(name: string, posted: Posted | undefined): Promise<void> {
    const write = async () => {
      const next = new Map(this.#posted);
      if (posted) next.set(name, posted);
      else next.delete(name);
      const text = JSON.stringify({ federations: Object.fromEntries(next) }, null, 2);
      await this.#options.store.write(Buffer.from(`${text}\n`));
      this.#posted = next;
      this.#options.onChange(this.zones());
    };
    const done = this.#writing.then(write);
    this.#writing = done.catch(() => {});
    return done;
  }
}

export function fileStore(disk: Disk, path: string): StubStore {
  return { read: () => disk.read(path), write: (bytes) => disk.write(path, bytes) };
}

function readPosted(text: string): Map<string, Posted> {
  const { federations } = JSON.parse(text) as { federations: Record<string, Posted> };
  for (const { nameservers } of Object.values(federations))
    for (const server of nameservers) parseServerAddress(server);
  return new Map(Object.entries(federations));
}

/** The parsed zones, or the reason why they are refused. Keys without quotes, as the seed prints them, are read too. */
function postedIn(text: string): Posted | string {
  let value: { nameservers?: unknown; suffix?: unknown; key?: unknown } | null;
  try {
    value = JSON.parse(text.replace(/([{,]\s*)nameservers\s*:/, '$1"nameservers":')) as typeof value;
  } catch {
    return 'want JSON such as {"nameservers": ["10.0.0.1"]}';
  }
  const problem = wrongWithNameservers(value?.nameservers);
  if (problem !== undefined) return problem;
  const [suffix, key] = [domainIn(value?.suffix), domainIn(value?.key)];
  if (suffix === null) return 'want a domain name in "suffix", such as federation';
  if (key === null) return 'want the name of a TSIG key in "key"';
  const nameservers = value!.nameservers as string[];
  return { nameservers, suffix, key };
}

/** Null if it is none. */
function domainIn(value: unknown): string | undefined | null {
  if (value === undefined) return undefined;
  const name = typeof value === 'string' ? value.replace(/\.$/, '').toLowerCase() : '';
  return isDnsSubdomain(name).length > 0 ? null : name;
}

function wrongWithNameservers(list: unknown): string | undefined {
  if (!Array.isArray(list) || list.length === 0) return 'want at least one nameserver in "nameservers"';
  if (list.length > nameserversMax) return `want at most ${nameserversMax} nameservers`;
  for (const server of list) {
    if (typeof server !== 'string') return 'want nameservers as texts';
    try {
      if (!isIP(parseServerAddress(server).host)) return `nameserver ${server}: want an address`;
    } catch (error) {
      return (error as Error).message;
    }
  }
  return undefined;
}

function json(status: number, value: unknown): HttpResponse {
  return { status, headers: { 'content-type': 'application/json' }, body: Buffer.from(`${JSON.stringify(value)}\n`) };
}

function reply(status: number, error: string, headers: Record<string, string> = {}): HttpResponse {
  const { body } = json(status, { error });
  return { status, headers: { 'content-type': 'application/json', ...headers }, body };
}
