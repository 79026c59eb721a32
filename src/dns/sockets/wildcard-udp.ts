// UDP on a wildcard address. A socket that is bound to all addresses answers from the one the kernel prefers, which need not
// be the one that was asked: clients drop such answers. So each local address has a socket of its own, and addresses are
// followed as they come and go. The wildcard socket stays for addresses that no interface lists, such as 127.0.0.53.

import { isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Timer, Timers } from '../../base/world.ts';
import { type Listening, listenUdp, type UdpOptions } from './server-udp.ts';

/** All addresses of this host at this moment. */
export type LocalAddresses = () => readonly string[];

export interface WildcardOptions extends UdpOptions {
  readonly timers: Timers;
  readonly localAddresses?: LocalAddresses | undefined;
}

const followMs = 1000;

export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || /^[0:]+$/.test(host);
}

export async function listenWildcardUdp(options: WildcardOptions): Promise<Listening> {
  const { timers, onError, localAddresses = interfaceAddresses } = options;
  const port = options.reusePort ? options.port : await claimPort(options);
  const shared = { ...options, port, reusePort: true };
  const rest = await listenUdp(shared);
  const own = new Map<string, Listening>();
  let timer: Timer | undefined;
  let following: Promise<void> = Promise.resolve();
  let isClosed = false;

  async function follow(): Promise<void> {
    const wanted = new Set(localAddresses().filter((address) => isIPv6(address) === isIPv6(options.host)));
    for (const [address, socket] of own) {
      if (wanted.has(address)) continue;
      own.delete(address);
      await socket.close();
    }
    for (const address of wanted) {
      if (own.has(address) || isClosed) continue;
      // An address may be gone again, or not usable yet: the next look tries once more.
      await listenUdp({ ...shared, port: rest.port, host: address }).then(
        (socket) => own.set(address, socket),
        (error: { code?: string }) => error.code !== 'EADDRNOTAVAIL' && onError(error),
      );
    }
  }

  function followOn(): void {
    following = follow().then(() => {
      if (!isClosed) timer = timers.after(followMs, followOn);
    });
  }

  followOn();
  await following;
  const all = () => [rest, ...own.values()];
  return {
    port: rest.port,
    drain: async () => void (await Promise.all(all().map((socket) => socket.drain()))),
    close: async () => {
      isClosed = true;
      timer?.cancel();
      await following;
      await Promise.all(all().map((socket) => socket.close()));
    },
  };
}

/** Sockets that share a port would share it with strangers too: one that does not share tells whether it is free. */
async function claimPort(options: UdpOptions): Promise<number> {
  const claim = await listenUdp({ ...options, reusePort: false });
  await claim.close();
  return claim.port;
}

function interfaceAddresses(): string[] {
  return Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
    addresses.map(({ address, scopeid }: { address: string; scopeid?: number }) =>
      scopeid ? `${address}%${name}` : address,
    ),
  );
}
