// An address of this machine that is not loopback: connections to it come from it, as they would from another machine.

import { networkInterfaces } from 'node:os';

export function ownAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const found = all.find(({ family, internal }) => family === 'IPv4' && !internal);
  if (found === undefined)
    throw new Error('this machine has no IPv4 address besides loopback; add one to run this test');
  return found.address;
}
