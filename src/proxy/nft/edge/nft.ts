// The kernel's nftables through the nft program. Changes go through one long-lived `nft -i`, a transaction for each
// include; when that process dies, the next transaction starts another one. Reading uses a process of its own.
//
// A process for each change would cost 20 ms, nearly all of it for starting and for closing its socket.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Host } from '../../../base/host.ts';
import { type Finished, MissingProgram, programPath, runProgram } from './programs.ts';

/** A table or a set of one, by names with `inet`; of the whole ruleset everything but elements. */
export type Listing = 'ruleset-without-elements' | { readonly table: string; readonly set?: string };

export interface Nft {
  /** One transaction: all of it or nothing. Rejects with what nft said. */
  apply(script: string): Promise<void>;
  /** JSON of `nft -j list …`. */
  list(what: Listing): Promise<string>;
  close(): Promise<void>;
}

interface Pending {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Answered without touching the kernel, and by every version: its first line ends the answer to what came before. */
const marker = 'describe ct state\n';
const markerLine = /^ct expression, datatype ct_state/;
const markerRest = /^(\t|$|pre-defined symbolic constants)/;
const answerMs = 60_000;

export class NftProgram implements Nft {
  readonly #host: Host;
  readonly #directory = mkdtempSync(join(tmpdir(), 'portolan-nft-'));
  #child: ChildProcess | undefined;
  #pending: Pending | undefined;
  #answer: string[] = [];
  #rest = '';
  #turn: Promise<unknown> = Promise.resolve();
  #count = 0;

  constructor(host: Host) {
    this.#host = host;
  }

  apply(script: string): Promise<void> {
    const turn = this.#turn.then(() => this.#apply(script));
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async list(what: Listing): Promise<string> {
    // Without elements only the whole ruleset is quick: of one table nft fetches them all the same.
    const args =
      what === 'ruleset-without-elements' ? ['-j', '-t', 'list', 'ruleset'] : ['-j', 'list', ...objectOf(what)];
    const { code, out, err } = await runNft(this.#host, args);
    if (code === 0) return out;
    if (/No such file or directory/.test(err)) return '{"nftables":[]}';
    throw new Error(`nft ${args.join(' ')}: ${nftProblem(err)}`);
  }

  /** Changes nothing, but is seen. */
  introduce(mark: string): Promise<void> {
    return this.apply(`add table inet ${mark}\ndelete table inet ${mark}\n`);
  }

  async close(): Promise<void> {
    await this.#turn;
    const child = this.#child;
    this.#child = undefined;
    if (child !== undefined) {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.stdin?.end();
      child.kill('SIGTERM');
      await ended;
    }
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #apply(script: string): Promise<void> {
    const child = this.#child ?? (await this.#start());
    this.#count += 1;
    const file = join(this.#directory, `${this.#count % 2}.nft`);
    writeFileSync(file, script);
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => child.kill('SIGKILL'), answerMs);
      const settle = () => clearTimeout(timer);
      this.#answer = [];
      this.#pending = {
        resolve: () => {
          settle();
          resolve();
        },
        reject: (error) => {
          settle();
          reject(error);
        },
      };
      child.stdin?.write(`include "${file}"\n${marker}`);
    });
  }

  async #start(): Promise<ChildProcess> {
    const env = { ...process.env, PATH: programPath(process.env), LC_ALL: 'C' };
    // One stream for both: an error comes before the marker that ends its answer.
    const child = spawn('sh', ['-c', 'exec nft -i 2>&1'], { env, stdio: ['pipe', 'pipe', 'ignore'] });
    this.#child = child;
    this.#rest = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => this.#read(chunk));
    child.stdin.on('error', () => {});
    child.once('error', (error) => this.#ended(child, error.message));
    child.once('close', (code, signal) => this.#ended(child, `nft ended with ${signal ?? code}`));
    return child;
  }

  #read(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      if (markerLine.test(line)) this.#answered();
      else if (!markerRest.test(line) && this.#answer.length < 50) this.#answer.push(line);
    }
  }

  #answered(): void {
    const pending = this.#pending;
    const answer = this.#answer.join('\n');
    this.#pending = undefined;
    this.#answer = [];
    if (/\bError:/.test(answer)) pending?.reject(new Error(`nft refused the rules: ${nftProblem(answer)}`));
    else pending?.resolve();
  }

  #ended(child: ChildProcess, why: string): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    const pending = this.#pending;
    this.#pending = undefined;
    const said = [...this.#answer, this.#rest].join('\n').trim();
    this.#answer = [];
    if (/nft: not found/.test(said)) pending?.reject(missingNft());
    else pending?.reject(new Error(`${why}${said === '' ? '' : `: ${nftProblem(said)}`}`));
  }
}

function objectOf({ table, set }: { readonly table: string; readonly set?: string }): string[] {
  return set === undefined ? ['table', ...table.split(' ')] : ['set', ...table.split(' '), set];
}

/** Removes the table, if it is there, and nothing else. */
export async function removeTable(host: Host): Promise<void> {
  const { code, err } = await runNft(host, ['add table inet portolan; delete table inet portolan']);
  if (code !== 0) throw new Error(`cannot remove table inet portolan: ${nftProblem(err)}`);
}

async function runNft(host: Host, args: readonly string[]): Promise<Finished> {
  try {
    return await runProgram(host, 'nft', args);
  } catch (error) {
    throw error instanceof MissingProgram ? missingNft() : error;
  }
}

function missingNft(): Error {
  return new MissingProgram(
    'nft is not installed: install nftables (apt-get install nftables), or use --mode userspace',
  );
}

/** The error of nft in one line, with advice if there is some. */
function nftProblem(said: string): string {
  const line = said.split('\n').find((each) => /Error:|not permitted|denied/.test(each)) ?? said.split('\n')[0] ?? '';
  const text = line.replace(/^.*?\bError: /, '').slice(0, 300);
  if (/Operation not permitted|Permission denied/.test(said))
    return `${text}; run it as root or with CAP_NET_ADMIN, or use --mode userspace`;
  if (/Operation not supported|Protocol not supported|Could not process rule: No such file/.test(said))
    return `${text}; the kernel may lack a feature: nf_tables with nat, masquerade, redirect, reject and numgen is needed (Linux 5.10 or later)`;
  return text;
}
