// The endpoint by which a federation tells this cluster's resolver where its nameservers are: POST, GET and DELETE of
// /federations/<name>. It reaches the stub zones and nothing else, believes only listed certificates, and writes to disk
// before it says yes.

import { isIP } from 'node:net';
import { tryEncodeName } from '../base/dns/name.ts';
import type { HttpRequest, HttpResponse } from '../base/http.ts';
import type { Log } from '../base/log.ts';
import type { Disk } from '../base/world.ts';
import { isDnsLabel, isDnsSubdomain } from '../model/names.ts';
import type { StubZone } from './stub-zones.ts';
import { parseServerAddress } from './upstream/servers.ts';

export interface FederationsOptions {
  readonly disk: Disk;
  /** File in which posted federations survive a restart. */
  readonly path: string;
  readonly log: Log;
  /** Certificate identities that may post. */
  readonly allowed: readonly string[];
  /** `<name>.svc.<suffix>` becomes the stub zone, unless the post names another suffix. */
  readonly suffix?: string;
  /** Zones in which nobody may post: the cluster's own. */
  readonly reserved?: readonly string[];
  /** Given at start; a post of the same federation replaces it until it is deleted. */
  readonly fixed?: readonly StubZone[];
  readonly onChange: (zones: readonly StubZone[]) => void;
}

interface Posted {
  readonly nameservers: readonly string[];
  readonly suffix?: string;
}

const nameserversMax = 16;
const bodyBytesMax = 16_384;
const prefix = '/federations';

export class Federations {
  readonly #options: FederationsOptions;
  #posted: Readonly<Record<string, Posted>> = {};
  /** Writes happen one after the other, in the order of the requests. */
  #writing: Promise<unknown> = Promise.resolve();

  constructor(options: FederationsOptions) {
    this.#options = options;
  }

  async load(): Promise<void> {
    const bytes = await this.#options.disk.read(this.#options.path);
    if (bytes) {
      try {
        this.#posted = readPosted(Buffer.from(bytes).toString('utf8'));
      } catch (cause) {
        throw new Error(`stub zones in ${this.#options.path} cannot be read; mend or remove the file`, { cause });
      }
    }
    this.#options.onChange(this.zones());
  }

  zones(): StubZone[] {
    const { fixed = [] } = this.#options;
    const posted = Object.entries(this.#posted).map(([name, { nameservers, suffix }]) => ({
      zone: this.#zoneOf(name, suffix),
      nameservers,
      sendsSource: true,
    }));
    const isPosted = (zone: string) => posted.some((other) => other.zone === zone);
    return [...fixed.filter(({ zone }) => !isPosted(zone)), ...posted];
  }

  /** `identity` is the name in a certificate the authority signed; empty for everybody else. */
  async handle(request: HttpRequest, identity: string): Promise<HttpResponse> {
    if (identity === '') return reply(401, "want a client certificate that this resolver's authority signed");
    if (!this.#options.allowed.includes(identity)) {
      this.#options.log.warn('stub zone refused', { identity, path: request.path });
      return reply(403, `${identity} may not set stub zones here`);
    }
    const [path] = request.path.split('?', 1) as [string];
    if (path === prefix && request.method === 'GET') return json(200, { federations: this.#posted });
    const name = path.startsWith(`${prefix}/`) ? path.slice(prefix.length + 1) : '';
    if (name === '' || isDnsLabel(name).length > 0) return reply(404, 'want /federations/<name>, a DNS label');
    if (request.method === 'GET') return this.#get(name);
    if (request.method === 'POST' || request.method === 'PUT') return this.#post(name, request.body, identity);
    if (request.method === 'DELETE') return this.#delete(name, identity);
    return reply(405, 'want GET, POST or DELETE', { allow: 'GET, POST, DELETE' });
  }

  #get(name: string): HttpResponse {
    const posted = this.#posted[name];
    return posted ? json(200, posted) : reply(404, `federation ${name} is not known here`);
  }

  #zoneOf(name: string, suffix: string | undefined): string {
    return `${name}.svc.${suffix ?? this.#options.suffix ?? 'federation'}`;
  }

  /** The zone it lies in that is not the federation's to take; undefined if there is none. */
  #reservedAround(zone: string): string | undefined {
    const { reserved = [], fixed = [] } = this.#options;
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
    await this.#change({ [name]: posted });
    this.#options.log.info('stub zone set', { zone, nameservers: posted.nameservers, identity });
    return json(200, posted);
  }

  async #delete(name: string, identity: string): Promise<HttpResponse> {
    if (!this.#posted[name]) return reply(404, `federation ${name} is not known here`);
    await this.#change({ [name]: undefined });
    this.#options.log.info('stub zone removed', { federation: name, identity });
    return json(200, {});
  }

  #change(change: Record<string, Posted | undefined>): Promise<void> {
    const write = async () => {
      const next: Record<string, Posted> = {};
      for (const [name, posted] of Object.entries({ ...this.#posted, ...change })) if (posted) next[name] = posted;
      await this.#options.disk.write(
        this.#options.path,
        Buffer.from(`${JSON.stringify({ federations: next }, null, 2)}\n`),
      );
      this.#posted = next;
      this.#options.onChange(this.zones());
    };
    const done = this.#writing.then(write);
    this.#writing = done.catch(() => {});
    return done;
  }
}

function readPosted(text: string): Record<string, Posted> {
  const { federations } = JSON.parse(text) as { federations: Record<string, Posted> };
  for (const { nameservers } of Object.values(federations))
    for (const server of nameservers) parseServerAddress(server);
  return federations;
}

/** What was posted, or what is wrong with it. Keys without quotes, as the seed prints them, are read too. */
function postedIn(text: string): Posted | string {
  let value: { nameservers?: unknown; suffix?: unknown } | null;
  try {
    value = JSON.parse(text.replace(/([{,]\s*)nameservers\s*:/, '$1"nameservers":')) as typeof value;
  } catch {
    return 'want JSON such as {"nameservers": ["10.0.0.1"]}';
  }
  const problem = wrongWithNameservers(value?.nameservers);
  if (problem !== undefined) return problem;
  const nameservers = value!.nameservers as string[];
  if (value?.suffix === undefined) return { nameservers };
  const suffix = typeof value.suffix === 'string' ? value.suffix.replace(/\.$/, '').toLowerCase() : '';
  if (isDnsSubdomain(suffix).length > 0) return 'want a domain name in "suffix", such as federation';
  return { nameservers, suffix };
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
