// The connection to the server: one stream of rows, opened anew when it breaks, when the browser slept, and when somebody
// signs in. Says at any time whether what the page shows is current.

import { createContext } from 'react';
import type { Message } from '../../wire/rows.ts';
import { Rows } from './rows.ts';
import { Tabs } from './tabs.ts';

export type Connection =
  | { readonly kind: 'signed out'; readonly why: string }
  | { readonly kind: 'connecting'; readonly sinceMs: number }
  | { readonly kind: 'live' }
  /** Nothing comes any more; rows are those of `asOfMs`. */
  | { readonly kind: 'lost'; readonly why: string }
  /** The page is hidden; rows are those of `asOfMs`. */
  | { readonly kind: 'paused' };

export interface Hello {
  readonly bearer: string;
  readonly version: string;
  readonly clusterset: string;
  readonly isDemo: boolean;
}

/** Beats come every 5 s. */
const silenceMsMax = 12_000;
const hiddenMsMax = 60_000;
const retryMs = [500, 1_000, 2_000, 4_000, 8_000];
const tokenKey = 'portolan-token';
const namespacesKey = 'portolan-namespaces';

export class Live {
  readonly rows = new Rows();
  connection: Connection = { kind: 'signed out', why: '' };
  hello: Hello | undefined;
  /** Wall time of the server at its last message; 0 is never. */
  asOfMs = 0;
  /** The server's clock minus the browser's. */
  offsetMs = 0;
  version = 0;
  #listeners = new Set<() => void>();
  #stream: AbortController | undefined;
  #heardMs = 0;
  #hiddenSinceMs: number | undefined;
  #failures = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #number = -1;
  /** Once it has started. */
  #tabs: Tabs | undefined;

  start(): void {
    this.#tabs = new Tabs(
      () => ({ token: this.token(), namespaces: this.namespaces() }),
      () => this.#forget(),
    );
    const fromLink = /^#token=(.+)$/.exec(location.hash)?.[1];
    if (fromLink !== undefined) {
      sessionStorage.setItem(tokenKey, decodeURIComponent(fromLink));
      history.replaceState(null, '', location.pathname + location.search);
    }
    if (this.token() !== '') this.#open();
    else void this.#signInAsOthers();
    setInterval(() => this.#look(), 1_000);
    document.addEventListener('visibilitychange', () => this.#look());
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  signIn(token: string, namespaces: string): void {
    sessionStorage.setItem(tokenKey, token.trim());
    sessionStorage.setItem(namespacesKey, namespaces.trim());
    this.#failures = 0;
    this.#open();
  }

  /** A link that was opened in a new tab. */
  async #signInAsOthers(): Promise<void> {
    this.#enter({ kind: 'connecting', sinceMs: Date.now() });
    const given = await this.#tabs?.ask();
    if (given !== undefined) this.signIn(given.token, given.namespaces);
    else if (this.connection.kind === 'connecting' && this.token() === '') this.#enter({ kind: 'signed out', why: '' });
  }

  /** In all tabs of this bearer. */
  signOut(): void {
    this.#tabs?.signedOut({ token: this.token(), namespaces: this.namespaces() });
    this.#forget();
  }

  #forget(): void {
    sessionStorage.removeItem(tokenKey);
    this.#close();
    this.rows.take({}, true);
    this.hello = undefined;
    this.#enter({ kind: 'signed out', why: '' });
  }

  token(): string {
    return sessionStorage.getItem(tokenKey) ?? '';
  }

  namespaces(): string {
    return sessionStorage.getItem(namespacesKey) ?? '';
  }

  /** Asks the server a question as the bearer of this page. */
  async ask<T>(path: string, query: Record<string, string>, options: { method?: string; signal?: AbortSignal } = {}) {
    const response = await fetch(`${path}?${this.#query(query)}`, {
      method: options.method ?? 'GET',
      headers: { authorization: `Bearer ${this.token()}` },
      signal: options.signal ?? null,
    });
    const body = (await response.json()) as T & { error?: string };
    if (!response.ok) throw new Error(body.error ?? `the dashboard answered ${response.status}`);
    return body as T;
  }

  #query(more: Record<string, string>): string {
    const namespaces = this.namespaces()
      .split(/[\s,]+/)
      .filter((one) => one !== '')
      .join(',');
    return new URLSearchParams({ ...more, ...(namespaces === '' ? {} : { namespaces }) }).toString();
  }

  #tell(): void {
    this.version += 1;
    for (const listener of this.#listeners) listener();
  }

  #enter(next: Connection): void {
    this.connection = next;
    this.#tell();
  }

  /** Every second, and when the page is shown again: a browser that slept has missed its own timers too. */
  #look(): void {
    const nowMs = Date.now();
    if (document.hidden) this.#hiddenSinceMs ??= nowMs;
    else this.#hiddenSinceMs = undefined;
    const isUnseen = this.#hiddenSinceMs !== undefined && nowMs - this.#hiddenSinceMs > hiddenMsMax;
    const { kind } = this.connection;
    if (isUnseen && kind === 'live') {
      this.#close();
      this.#enter({ kind: 'paused' });
    } else if (!isUnseen && kind === 'paused') this.#open();
    else if (kind === 'live' && nowMs - this.#heardMs > silenceMsMax)
      this.#lost('the dashboard sends nothing any more');
    else this.#tell();
  }

  #close(): void {
    clearTimeout(this.#retry);
    this.#stream?.abort();
    this.#stream = undefined;
  }

  #open(): void {
    this.#close();
    const stream = new AbortController();
    this.#stream = stream;
    if (this.connection.kind !== 'lost') this.#enter({ kind: 'connecting', sinceMs: Date.now() });
    this.#run(stream.signal).catch((error: unknown) => {
      if (!stream.signal.aborted) this.#lost(error instanceof Error ? error.message : String(error));
    });
  }

  async #run(signal: AbortSignal): Promise<void> {
    const response = await fetch(`/api/stream?${this.#query({})}`, {
      headers: { authorization: `Bearer ${this.token()}` },
      signal,
    });
    if (response.status === 401) {
      const { error } = (await response.json()) as { error: string };
      this.#close();
      return this.#enter({ kind: 'signed out', why: error });
    }
    if (!response.ok || response.body === null) throw new Error(`the dashboard answered ${response.status}`);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    this.#number = -1;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Error('the dashboard ended the connection');
      const lines = (rest + value).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#take(JSON.parse(line) as Message);
      if (lines.length > 0) this.#tell();
    }
  }

  #take(message: Message): void {
    if (message.kind === 'end') throw new Error(message.why);
    this.#heardMs = Date.now();
    this.asOfMs = message.nowMs;
    this.offsetMs = message.nowMs - Date.now();
    if (message.kind === 'hello') {
      this.hello = message;
      return;
    }
    const isSnapshot = this.#number === -1;
    const expected = message.kind === 'change' && !isSnapshot ? this.#number + 1 : message.number;
    if (message.number !== expected) throw new Error('a change was missed');
    this.#number = message.number;
    if (message.kind === 'change') this.rows.take(message.changes, isSnapshot);
    this.#failures = 0;
    if (this.connection.kind !== 'live') this.connection = { kind: 'live' };
  }

  #lost(why: string): void {
    this.#close();
    this.#enter({ kind: 'lost', why });
    const delayMs = retryMs[Math.min(this.#failures, retryMs.length - 1)];
    this.#failures += 1;
    this.#retry = setTimeout(() => this.#open(), delayMs);
  }
}

export const LiveContext = createContext<Live>(new Live());
