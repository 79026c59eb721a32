// One runner process, which judges mutants one after the other. A mutant that never ends, or breaks the process, counts as
// found, and a new process goes on.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Job, Verdict } from './runner.ts';

const silenceMsMax = 600_000;

export class Lane {
  readonly #root: string;
  readonly #tests: readonly string[];
  #child: ChildProcess | undefined;
  #silenceMs = silenceMsMax;

  constructor(root: string, tests: readonly string[]) {
    this.#root = root;
    this.#tests = tests;
  }

  /** Runs all tests on the files as they are; resolves with the first that fails. Mutants get twice the time this took. */
  async judgeUnchanged(): Promise<string | undefined> {
    const startedMs = performance.now();
    const failing = await this.judge({ file: '' });
    this.#silenceMs = 5_000 + 2 * (performance.now() - startedMs);
    return failing;
  }

  /** Resolves with the first failing test, if one fails. */
  async judge(job: Job): Promise<string | undefined> {
    const child = this.#child ?? (await this.#start());
    child.send(job);
    const verdict = await answerOf(child, this.#silenceMs);
    if (verdict === undefined) this.stop();
    return verdict === undefined ? 'nothing: it did not end' : verdict.killedBy;
  }

  stop(): void {
    this.#child?.kill('SIGKILL');
    this.#child = undefined;
  }

  async #start(): Promise<ChildProcess> {
    const child = fork(join(this.#root, 'test/mutate/runner.ts'), this.#tests, { cwd: this.#root, stdio: 'ignore' });
    this.#child = child;
    await once(child, 'message');
    return child;
  }
}

function answerOf(child: ChildProcess, silenceMs: number): Promise<Verdict | undefined> {
  return new Promise((resolve) => {
    const end = (verdict?: Verdict) => {
      clearTimeout(timer);
      child.off('message', end).off('exit', gone);
      resolve(verdict);
    };
    const gone = () => end();
    const timer = setTimeout(gone, silenceMs);
    child.on('message', end).on('exit', gone);
  });
}
