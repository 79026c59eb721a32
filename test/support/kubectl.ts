// A real kubectl against one home, with its own cache and no configuration of the person who runs the tests.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';

export interface KubectlResult {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface KubectlOptions {
  readonly path: string;
  readonly kubeconfig: string;
  /** For its cache and files it writes. */
  readonly directory: string;
}

/** One that keeps running, such as `get -w`. */
export interface RunningKubectl {
  out(): string;
  until(holds: (out: string) => boolean): Promise<void>;
  stop(): Promise<void>;
}

export class Kubectl {
  readonly #options: KubectlOptions;
  readonly #running = new Set<ChildProcess>();

  constructor(options: KubectlOptions) {
    this.#options = options;
    mkdirSync(options.directory, { recursive: true });
  }

  run(line: string | readonly string[], stdin = '', env: Record<string, string> = {}): Promise<KubectlResult> {
    const child = this.#spawn(line, env);
    const output = collect(child);
    child.stdin!.on('error', () => {}).end(stdin);
    return new Promise((resolve) => child.once('close', (code) => resolve({ code, ...output() })));
  }

  /** Its output; fails the test if it did not succeed. */
  async ok(line: string | readonly string[], stdin = '', env: Record<string, string> = {}): Promise<string> {
    const { code, out, err } = await this.run(line, stdin, env);
    if (code !== 0) throw new Error(`kubectl ${asArgs(line).join(' ')} ended with ${code}: ${out}${err}`);
    return out.trim();
  }

  /** Its error; fails the test if it succeeded. */
  async refused(line: string | readonly string[], stdin = ''): Promise<string> {
    const { code, out, err } = await this.run(line, stdin);
    if (code === 0) throw new Error(`kubectl ${asArgs(line).join(' ')} should have failed and said: ${out}${err}`);
    return err.trim();
  }

  start(line: string | readonly string[]): RunningKubectl {
    const child = this.#spawn(line, {});
    const output = collect(child);
    child.stdin!.end();
    const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
    return {
      out: () => output().out,
      until: (holds) =>
        until(
          () => holds(output().out),
          () => `kubectl said ${JSON.stringify(output())}`,
        ),
      stop: async () => {
        if (child.exitCode === null) child.kill('SIGTERM');
        await closed;
      },
    };
  }

  stopAll(): void {
    for (const child of this.#running) child.kill('SIGKILL');
  }

  #spawn(line: string | readonly string[], env: Record<string, string>): ChildProcess {
    const { path, kubeconfig, directory } = this.#options;
    const child = spawn(path, [...asArgs(line)], {
      cwd: directory,
      env: { PATH: process.env['PATH'], HOME: directory, KUBECONFIG: kubeconfig, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#running.add(child);
    child.once('close', () => this.#running.delete(child));
    return child;
  }
}

/** Words of a line; what is in single quotes stays together. */
export function asArgs(line: string | readonly string[]): readonly string[] {
  if (typeof line !== 'string') return line;
  return [...line.matchAll(/(?:'[^']*'|[^\s'])+/g)].map(([word]) => word.replaceAll("'", ''));
}

export async function until(holds: () => boolean | Promise<boolean>, else_: () => string = String): Promise<void> {
  for (let round = 0; round < 1200; round++) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`did not come about: ${holds}; ${else_()}`);
}

function collect(child: ChildProcess): () => { out: string; err: string } {
  let out = '';
  let err = '';
  child.stdout!.setEncoding('utf8').on('data', (chunk: string) => (out += chunk));
  child.stderr!.setEncoding('utf8').on('data', (chunk: string) => (err += chunk));
  return () => ({ out, err });
}
