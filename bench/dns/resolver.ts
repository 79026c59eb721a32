// The real `portolan dns` as a process, and a stand-in home with made-up services for it to read.

import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Running, type Script, startScript, stop } from './process.ts';

/** Resolves when it has read everything. */
export async function startResolver(
  kubeconfig: string,
  state: string,
  onListening: (port: number) => Promise<void> = async () => {},
): Promise<Running> {
  const portolan = fileURLToPath(new URL('../../bin/portolan', import.meta.url));
  const where = ['--kubeconfig', kubeconfig, '--state', state, '--listen', '127.0.0.1:0'];
  const args = ['dns', '--cluster-id', 'north', '--log-level', 'warn', ...where];
  const child = spawn(portolan, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  let port = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith('listening ')) {
      port = Number(line.split(':')[1]);
      await onListening(port);
    }
    if (line === 'ready') break;
  }
  return { port, pid: child.pid!, stop: () => stop(child) };
}

/** Writes the file `kubeconfig`; changes an endpoint when told `{ service, address }`. */
export async function startStandInHome(
  kubeconfig: string,
  services: number,
  ...options: readonly 'no-ips'[]
): Promise<Script> {
  const script = fileURLToPath(new URL('stand-in-home.mjs', import.meta.url));
  const home = await startScript([script, String(services), ...options]);
  writeFileSync(kubeconfig, kubeconfigFor(`http://127.0.0.1:${home.port}`));
  return home;
}

function kubeconfigFor(server: string): string {
  const entry = (kind: string, value: object) => [{ name: 'bench', [kind]: value }];
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: entry('cluster', { server }),
    users: entry('user', {}),
    contexts: entry('context', { cluster: 'bench', user: 'bench' }),
    'current-context': 'bench',
  });
}
