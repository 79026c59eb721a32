// The endpoint by which a federation tells this cluster's resolver where its nameservers are: POST, GET and DELETE of
// /federations/<name>. It reaches the stub zones and nothing else, believes only listed certificates, and writes to disk
// before it says yes.

import { isIP } from 'node:net';
import type { HttpRequest, HttpResponse } from '../base/http.ts';
import type { Log } from '../base/log.ts';
import type { Disk } from '../base/world.ts';
import { isDnsLabel } from '../model/names.ts';
import type { StubZone } from './stub-zones.ts';
import { parseServerAddress } from './upstream/servers.ts';

export interface FederationsOptions {
  readonly disk: Disk;
  /** File in which posted federations survive a restart. */
  readonly path: string;
  readonly log: Log;
  /** Certificate identities that may post. */
  readonly allowed: readonly string[];
  /** `<name>.svc.<suffix>` becomes the stub zone. */
  readonly suffix?: string;
  /** Given at start; a post of the same federation replaces it until it is deleted. */
  readonly fixed?: readonly StubZone[];
  readonly onChange: (zones: readonly StubZone[]) => void;
}

const nameserversMax = 16;
const bodyBytesMax = 16_384;
const prefix = '/federations';

export class Federations {
  readonly #options: FederationsOptions;
  #posted: Record<string, readonly string[]> = {};
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
    const { fixed = [], suffix = 'federation' } = this.#options;
    const posted = Object.entries(this.#posted).map(([name, nameservers]) => ({
      zone: `${name}.svc.${suffix}`,
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
    const nameservers = this.#posted[name];
    return nameservers ? json(200, { nameservers }) : reply(404, `federation ${name} is not known here`);
  }

  async #post(name: string, body: Uint8Array | undefined, identity: string): Promise<HttpResponse> {
    if ((body?.length ?? 0) > bodyBytesMax) return reply(413, `want at most ${bodyBytesMax} bytes`);
    const nameservers = nameserversIn(Buffer.from(body ?? []).toString('utf8'));
    if (typeof nameservers === 'string') return reply(400, nameservers);
    await this.#change({ [name]: nameservers });
    this.#options.log.info('stub zone set', { federation: name, nameservers, identity });
    return json(200, { nameservers });
  }

  async #delete(name: string, identity: string): Promise<HttpResponse> {
    if (!this.#posted[name]) return reply(404, `federation ${name} is not known here`);
    await this.#change({ [name]: undefined });
    this.#options.log.info('stub zone removed', { federation: name, identity });
    return json(200, {});
  }

  #change(change: Record<string, readonly string[] | undefined>): Promise<void> {
    const write = async () => {
      const next: Record<string, readonly string[]> = {};
      for (const [name, nameservers] of Object.entries({ ...this.#posted, ...change }))
        if (nameservers) next[name] = nameservers;
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

function readPosted(text: string): Record<string, readonly string[]> {
  const { federations } = JSON.parse(text) as { federations: Record<string, string[]> };
  for (const nameservers of Object.values(federations)) for (const server of nameservers) parseServerAddress(server);
  return federations;
}

/** The list, or what is wrong with it. Keys without quotes, as the seed prints them, are read too. */
function nameserversIn(text: string): readonly string[] | string {
  let value: { nameservers?: unknown };
  try {
    value = JSON.parse(text.replace(/([{,]\s*)nameservers\s*:/, '$1"nameservers":')) as { nameservers?: unknown };
  } catch {
    return 'want JSON such as {"nameservers": ["10.0.0.1"]}';
  }
  const list = value?.nameservers;
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
  return list as string[];
}

function json(status: number, value: unknown): HttpResponse {
  return { status, headers: { 'content-type': 'application/json' }, body: Buffer.from(`${JSON.stringify(value)}\n`) };
}

function reply(status: number, error: string, headers: Record<string, string> = {}): HttpResponse {
  const { body } = json(status, { error });
  return { status, headers: { 'content-type': 'application/json', ...headers }, body };
}
