// Starts `portolan peering` as a process of its own, and runs `portolan peer …`.

import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('peering-cli.ts', import.meta.url));

export interface PeeringProcess {
  readonly child: ChildProcess;
  readonly address: string;
  readonly admin: string;
  errors(): string;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export interface PeeringProcessOptions {
  readonly kubeconfig: string;
  readonly trustDomain: string;
  readonly listen?: string;
  readonly args?: readonly string[];
}

export function startPeeringProcess(options: PeeringProcessOptions): Promise<PeeringProcess> {
  const listen = options.listen ?? '127.0.0.1:0';
  const own = ['--kubeconfig', options.kubeconfig, '--trust-domain', options.trustDomain, '--listen', listen];
  const args = [
    program,
    'peering',
    ...own,
    '--ingress',
    '192.0.2.1:15443',
    '--ingress-probe',
    '0',
    '--log-level',
    'warn',
  ];
  const child = spawn(process.execPath, [...args, ...(options.args ?? [])], { stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  let errors = '';
  child.stderr?.on('data', (chunk) => (errors += chunk));
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`portolan peering exited with ${code}: ${out}${errors}`)));
    child.stdout?.on('data', (chunk) => {
      out += chunk;
      const ready = /ready (\S+)\nadmin (\S+)\n/.exec(out);
      if (ready === null) return;
      resolve({
        child,
        address: ready[1] as string,
        admin: ready[2] as string,
        errors: () => errors,
        stop: (signal = 'SIGTERM') => {
          child.kill(signal);
          return exited;
        },
      });
    });
  });
}

export interface CliResult {
  readonly code: number | null;
  readonly out: string;
  readonly errors: string;
}

export function runPeerCli(kubeconfig: string, ...args: readonly string[]): Promise<CliResult> {
  const child = spawn(process.execPath, [program, 'peer', ...args, '--kubeconfig', kubeconfig]);
  let out = '';
  let errors = '';
  child.stdout.on('data', (chunk) => (out += chunk));
  child.stderr.on('data', (chunk) => (errors += chunk));
  return new Promise((resolve) => child.once('exit', (code) => resolve({ code, out, errors })));
}
