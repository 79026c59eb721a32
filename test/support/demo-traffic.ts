// Clients in the demo's west: real connections to clusterset IPs, a known number or at a steady rate.

import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import type { RunningDemo } from './dashboard.ts';

/** The clusterset IP and port of a service, as west knows them. */
export async function addressInWest(demo: RunningDemo, name: string): Promise<{ host: string; port: number }> {
  const client = await demo.client('west');
  const { spec } = await client.get<ServiceImport>(serviceImportType, { namespace: 'shop', name });
  return { host: spec.ips?.[0] ?? '', port: spec.ports?.[0]?.port ?? 0 };
}

/** Resolves with whether it was answered. */
export function request({ host, port }: { readonly host: string; readonly port: number }): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host, () => socket.write('GET / HTTP/1.1\r\nhost: demo\r\nconnection: close\r\n\r\n'));
    let isAnswered = false;
    socket.on('data', () => {
      isAnswered = true;
    });
    socket.on('error', () => resolve(false));
    socket.on('close', () => resolve(isAnswered));
  });
}

/** Until it is stopped. */
export function steadily(address: { readonly host: string; readonly port: number }, everyMs: number): () => void {
  const ending = new AbortController();
  void (async () => {
    while (!ending.signal.aborted) {
      await Promise.all([request(address), sleep(everyMs, undefined, { signal: ending.signal }).catch(() => {})]);
    }
  })();
  return () => ending.abort();
}
