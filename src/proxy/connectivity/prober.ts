// Resolves a name and opens TCP connections, and finds out which endpoint each one reached: from the kernel's
// connection tracking, or from the process that passed the connection on.

import { lookup, Resolver } from 'node:dns/promises';
import { connect, type Socket } from 'node:net';
import type { Host } from '../../base/host.ts';
import { runProgram } from '../nft/edge/programs.ts';
import { at, type Outcome } from './report.ts';

export interface Target {
  readonly ip: string;
  readonly port: number;
}

/** `ADDRESS:PORT` of the endpoint behind a connection from this local port; undefined if that is not known. */
export type Identify = (target: Target, localPorts: readonly number[]) => Promise<ReadonlyMap<number, string>>;

export interface ProbeResult {
  readonly outcomes: Partial<Record<Outcome, number>>;
  readonly answeredBy: Record<string, number>;
}

const connectMs = 2000;
const atOnce = 20;

export async function resolveName(
  name: string,
  server: string | undefined,
): Promise<{ addresses: string[] } | { error: string }> {
  try {
    if (server === undefined) return { addresses: (await lookup(name, { all: true })).map(({ address }) => address) };
    const resolver = new Resolver({ timeout: 2000, tries: 2 });
    resolver.setServers([server]);
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    const failure = answers.find((answer) => answer.status === 'rejected');
    return addresses.length === 0 && failure ? { error: codeOf(failure.reason) } : { addresses };
  } catch (error) {
    return { error: codeOf(error) };
  }
}

export async function probe(target: Target, count: number, identify: Identify): Promise<ProbeResult> {
  const outcomes: ProbeResult['outcomes'] = {};
  const answeredBy: Record<string, number> = {};
  for (let done = 0; done < count; done += atOnce) {
    const round = await Promise.all(Array.from({ length: Math.min(atOnce, count - done) }, () => open(target)));
    const ports = round.flatMap(({ socket }) => (socket?.localPort === undefined ? [] : [socket.localPort]));
    const endpoints = await identify(target, ports).catch(() => new Map<number, string>());
    for (const { outcome, socket } of round) {
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      const endpoint = endpoints.get(socket?.localPort ?? 0);
      if (endpoint !== undefined) answeredBy[endpoint] = (answeredBy[endpoint] ?? 0) + 1;
      socket?.destroy();
    }
  }
  return { outcomes, answeredBy };
}

function open({ ip, port }: Target): Promise<{ readonly outcome: Outcome; readonly socket?: Socket }> {
  return new Promise((resolve) => {
    const socket = connect({ host: ip, port });
    const timer = setTimeout(() => {
      socket.destroy();
      resolve({ outcome: 'timed out' });
    }, connectMs);
    socket.once('connect', () => {
      clearTimeout(timer);
      resolve({ outcome: 'connected', socket });
    });
    socket.on('error', (error) => {
      clearTimeout(timer);
      resolve({ outcome: /ECONNREFUSED|ECONNRESET/.test(codeOf(error)) ? 'refused' : outcomeOf(error) });
    });
  });
}

function outcomeOf(error: unknown): Outcome {
  return codeOf(error) === 'ETIMEDOUT' ? 'timed out' : 'unreachable';
}

/** By the kernel's table; nothing without root or without the program. */
export function identifyByConntrack(host: Host): Identify {
  return async ({ ip, port }, localPorts) => {
    const family = ip.includes(':') ? ['-f', 'ipv6'] : [];
    const args = ['-L', ...family, '-p', 'tcp', '--orig-dst', ip, '--dport', String(port)];
    const { code, out } = await runProgram(host, 'conntrack', args);
    return code === 0 ? parseConntrack(out, new Set(localPorts)) : new Map();
  };
}

/** Original port of the client to `ADDRESS:PORT` that replies. */
function parseConntrack(text: string, ports: ReadonlySet<number>): Map<number, string> {
  const found = new Map<number, string>();
  for (const line of text.split('\n')) {
    const sources = [...line.matchAll(/src=(\S+) dst=\S+ sport=(\d+) dport=\d+/g)];
    const localPort = Number(sources[0]?.[2]);
    const [, address, port] = sources[1] ?? [];
    if (ports.has(localPort) && address !== undefined) found.set(localPort, at(address, port!));
  }
  return found;
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
