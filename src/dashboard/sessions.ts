// The sessions of all bearers, found by a digest of what they signed in with. Bounded: so many bearers, and so many pages of
// each. A session ends a while after its last page was closed.

import { createHash } from 'node:crypto';
import { errorText, type Log } from '../base/log.ts';
import { repeat } from '../base/repeat.ts';
import { sleep, type Timer, type World } from '../base/world.ts';
import type { DashboardHome } from './homes/home-watch.ts';
import { type Listener, Session } from './session.ts';
import { parseSignIn, readClaims, type SignIn } from './sign-in.ts';
import { TokenCheck } from './token-check.ts';
import { History } from './traffic/history.ts';

export interface SessionsOptions {
  readonly world: World;
  readonly log: Log;
  readonly homes: readonly DashboardHome[];
  /** Short words that stand for a sign-in: the demo prints one. */
  readonly codes: ReadonlyMap<string, string>;
  readonly isDemo: boolean;
  readonly sessionsMax?: number;
  readonly objectsMax?: number;
}

export class Refused extends Error {
  readonly status: 401 | 429 | 503;

  constructor(status: Refused['status'], message: string) {
    super(message);
    this.status = status;
  }
}

const defaultSessionsMax = 32;
export const pagesMax = 12;
/** Copies of objects in all sessions together, before another bearer is let in. */
const objectsInAllMax = 1_000_000;
const lingerMs = 20_000;
/** After a session that records has ended. */
const recordAgainMs = 60_000;
/** How long the first answers of homes are waited for. */
const firstAnswerMs = 3_000;
const namespacesMax = 20;

interface Entry {
  readonly session: Session;
  linger: Timer | undefined;
  /** Why it ended; empty while it runs. */
  ended: string;
}

export class Sessions {
  readonly #options: SessionsOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #tokens: TokenCheck;
  /** One for all: a bearer sees the past of clusters that it may ask itself. */
  readonly #history = new History();
  #recorded: string | undefined;
  #stopRecording: (() => void) | undefined;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#tokens = new TokenCheck(options);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The running session of this bearer. Throws Refused if no page of it is open. */
  find(signIn: string, namespaces: readonly string[]): Session {
    const entry = this.#entries.get(digestOf(signIn, namespaces));
    if (entry === undefined) throw new Refused(401, 'sign in first: no page of this bearer is open');
    return entry.session;
  }

  /** Opens one page of a bearer; resolves when a home has accepted it. Returns what closes the page. */
  async open(text: string, namespaces: readonly string[], listener: Listener, address = ''): Promise<() => void> {
    const id = digestOf(text, namespaces);
    if (!this.#entries.has(id)) await this.#check(text, address);
    const entry = this.#entries.get(id) ?? this.#start(id, text, namespaces);
    entry.linger?.cancel();
    const { session } = entry;
    if (session.listeners >= pagesMax)
      throw new Refused(429, `${pagesMax} pages of this bearer are open already; close one`);
    const isWelcome = await this.#untilAnswered(session);
    if (isWelcome === false) {
      const why = session.refusals();
      this.#end(id, 'refused');
      throw new Refused(401, `no home accepts this token. ${why}`);
    }
    if (entry.ended !== '') throw new Refused(503, entry.ended);
    const close = session.listen(listener);
    return () => {
      close();
      if (session.listeners > 0 || this.#entries.get(id) !== entry || id === this.#recorded) return;
      entry.linger = this.#options.world.timers.after(lingerMs, () => this.#end(id, 'all pages were closed'));
    };
  }

  /** A session of this bearer runs also while no page is open, so that there is a past to look at. */
  record(text: string): void {
    const { world, log } = this.#options;
    const id = digestOf(text, []);
    const start = () => {
      try {
        if (!this.#entries.has(id)) this.#start(id, text, []);
      } catch (error) {
        log.warn('dashboard: the past is not recorded', { error: errorText(error) });
      }
    };
    this.#recorded = id;
    start();
    this.#stopRecording = repeat(world.timers, { everyMs: recordAgainMs }, start);
  }

  stop(): void {
    this.#stopRecording?.();
    for (const id of [...this.#entries.keys()]) this.#end(id, 'the dashboard stops');
  }

  async #check(text: string, address: string): Promise<void> {
    const signIn = this.#signIn(text);
    if (this.#options.codes.has(text)) return;
    const verdict = await this.#tokens.judge(signIn, { id: digestOf(text, []), address });
    if (verdict.kind === 'refused') throw new Refused(401, `no home accepts this token. ${verdict.why}`);
    if (verdict.kind === 'later') throw new Refused(429, 'too many tokens were tried; try again in some seconds');
  }

  #signIn(text: string): SignIn {
    const signIn = parseSignIn(this.#options.codes.get(text) ?? text);
    if (signIn === undefined) throw new Refused(401, 'this is no token: paste one, or NAME=TOKEN for each home');
    return signIn;
  }

  #start(id: string, text: string, named: readonly string[]): Entry {
    const { world, log, homes, isDemo, objectsMax, sessionsMax = defaultSessionsMax } = this.#options;
    const signIn = this.#signIn(text);
    this.#makeRoom(sessionsMax);
    const claims = claimsOf(signIn, homes);
    const namespaces = [...new Set([...named, ...claims.flatMap(({ namespace }) => namespace ?? [])])];
    const bearer = [...new Set(claims.map(({ subject }) => subject))].filter((one) => one !== '').join(', ');
    const session = new Session({
      ...{ world, log, homes, signIn, isDemo, bearer, objectsMax, history: this.#history },
      onTooLarge: () =>
        this.#end(id, 'you may see more objects than the dashboard holds for one bearer; name namespaces'),
      namespaces: namespaces.slice(0, namespacesMax),
    });
    const entry: Entry = { session, linger: undefined, ended: '' };
    this.#entries.set(id, entry);
    return entry;
  }

  /** Sessions without a page go first; with a page in each there is no room. */
  #makeRoom(sessionsMax: number): void {
    const objects = [...this.#entries.values()].reduce((sum, { session }) => sum + session.objects(), 0);
    if (this.#entries.size < sessionsMax && objects < objectsInAllMax) return;
    const idle = [...this.#entries].find(([id, { session }]) => session.listeners === 0 && id !== this.#recorded);
    if (idle === undefined)
      throw new Refused(503, 'as many bearers are signed in as the dashboard can hold; try again later');
    this.#end(idle[0], 'another bearer needed the room');
  }

  async #untilAnswered(session: Session): Promise<boolean | undefined> {
    const { world } = this.#options;
    const endMs = world.clock.monotonicMs() + firstAnswerMs;
    while (session.isWelcome() === undefined && world.clock.monotonicMs() < endMs) await sleep(world.timers, 25);
    return session.isWelcome();
  }

  #end(id: string, why: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    entry.ended = why;
    entry.linger?.cancel();
    entry.session.stop(why);
  }
}

function claimsOf(signIn: SignIn, homes: readonly DashboardHome[]) {
  return homes.flatMap(({ name }) => {
    const token = signIn.tokenFor(name);
    return token === undefined ? [] : [readClaims(token)];
  });
}

function digestOf(text: string, namespaces: readonly string[]): string {
  return createHash('sha256')
    .update(JSON.stringify([text, namespaces]))
    .digest('base64url');
}
