// The flags of `portolan dns` that list trusted resolvers, under their names and their earlier ones.

import { Command } from 'commander';
import { expect, test } from 'vitest';
import { createRealHost } from '../../base/real/host.ts';
import { addDnsCommand } from './dns.ts';
import { checkFlags, type DnsFlags, trustOf } from './dns-flags.ts';

async function parse(words: string): Promise<{ flags: DnsFlags; help: string }> {
  let flags: DnsFlags | undefined;
  const program = new Command().exitOverride();
  addDnsCommand(program, async (given) => {
    flags = given;
  });
  await program.parseAsync(['dns', ...words.split(' ')], { from: 'user' });
  return { flags: flags!, help: program.commands[0]!.helpInformation() };
}

test('portolan dns --trusted-range, --trusted-identity -> these resolvers are trusted', async () => {
  const { flags, help } = await parse('--trusted-range 10.0.0.0/8 --trusted-identity east');
  const trusted = { ranges: ['10.0.0.0/8'], identities: ['east'] };
  expect((await trustOf(createRealHost(), flags)).trusted).toEqual(trusted);
  expect(help).toContain('--trusted-key');
});

test('portolan dns --trusted-range nonsense -> names the flag', async () => {
  const { flags } = await parse('--cluster-id east --trusted-range nonsense');
  expect(() => checkFlags(flags)).toThrow('--trusted-range nonsense: want an address or a range');
});
