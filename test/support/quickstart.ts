// Reads the commands out of a quick start and runs them on its machines. A machine is a network namespace with a folder of
// its own; `east$ command` in a block of the Markdown is typed on east.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Finished, portolan, run } from './portolan.ts';

export interface Step {
  readonly machine: string;
  readonly command: string;
  /** The heading that it stands under. */
  readonly section: string;
}

const docs = fileURLToPath(new URL('../../docs/quickstart/', import.meta.url));

export function stepsOf(file: string): Step[] {
  const steps: Step[] = [];
  let section = '';
  for (const line of readFileSync(join(docs, file), 'utf8').split('\n')) {
    section = /^## (.+)$/.exec(line)?.[1] ?? section;
    const [, machine, command] = /^ *([a-z]+)\$ (.+)$/.exec(line) ?? [];
    if (machine !== undefined && command !== undefined) steps.push({ machine, command, section });
  }
  return steps;
}

/** Roles run until they are stopped. */
const roles = /^portolan (api|up|dns|authority|peering|agent|proxy|xds) /;

export interface Machine {
  readonly name: string;
  /** A program and its arguments that run a command on it. */
  readonly within: readonly string[];
}

export class Typist {
  readonly #machines: ReadonlyMap<string, Machine>;
  readonly #folder: string;
  readonly #translate: (command: string) => string;
  readonly #running: { readonly child: ChildProcess; readonly ended: Promise<void> }[] = [];
  readonly #tokens: string[] = [];
  /** Output of every role so far, by its command. */
  readonly said = new Map<string, string>();

  constructor(options: {
    readonly folder: string;
    readonly machines: readonly Machine[];
    /** Turns addresses of the text into those of the test. */
    readonly translate: (command: string) => string;
    /** Programs besides ours, by name, that may not be on PATH. */
    readonly tools?: Readonly<Record<string, string>>;
  }) {
    this.#machines = new Map(options.machines.map((machine) => [machine.name, machine]));
    this.#folder = options.folder;
    this.#translate = options.translate;
    mkdirSync(join(this.#folder, 'tools'), { recursive: true });
    symlinkSync(portolan, join(this.#folder, 'tools/portolan'));
    for (const [name, path] of Object.entries(options.tools ?? {}))
      symlinkSync(path, join(this.#folder, 'tools', name));
    for (const { name } of options.machines) mkdirSync(join(this.#folder, name), { recursive: true });
  }

  folderOf(machine: string): string {
    return join(this.#folder, machine);
  }

  /** Types the command and returns its output; fails unless the command succeeds. */
  async done(step: Step): Promise<string> {
    const { code, out, err } = await this.type(step);
    if (code !== 0) throw new Error(`${step.command} ended with ${code}: ${out}${err}`);
    return out;
  }

  /** Types one command. A token is kept for the first command after it that wants one for that cluster. */
  async type({ machine, command }: Step): Promise<Finished> {
    const line = this.#translate(command.replace('TOKEN', () => this.#tokenFor(command)));
    const { within } = this.#machines.get(machine)!;
    const options = { cwd: this.folderOf(machine), env: this.#environment() };
    if (roles.test(command)) return this.#start([...within, '/bin/sh', '-c', `exec ${line}`], options, command);
    const [program, ...args] = [...within, '/bin/sh', '-c', line];
    const finished = await run(program!, args, options);
    if (/ (broker|peer) token /.test(command)) this.#tokens.push(finished.out.trim());
    return finished;
  }

  #tokenFor(command: string): string {
    const token = this.#tokens.shift();
    if (token === undefined) throw new Error(`${command}: no command before it printed a token`);
    return token;
  }

  #environment(): NodeJS.ProcessEnv {
    const PATH = `${this.#folder}/tools:${process.env['PATH']}`;
    return { ...process.env, PATH, HOME: this.#folder, KUBECONFIG: undefined };
  }

  #start(words: readonly string[], options: object, command: string): Promise<Finished> {
    const [program, ...args] = words;
    const child = spawn(program!, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    this.#running.push({ child, ended });
    let [out, err] = ['', ''];
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (err += chunk));
    return new Promise((resolve) => {
      child.once('exit', (code) => resolve({ code: code ?? -1, out, err }));
      child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
        out += chunk;
        this.said.set(command, out);
        if (/^(ready|listening)\b|Ctrl-C/m.test(out)) resolve({ code: 0, out, err });
      });
    });
  }

  async stop(): Promise<void> {
    for (const { child, ended } of this.#running.splice(0).reverse()) {
      child.kill('SIGTERM');
      await ended;
    }
  }
}
