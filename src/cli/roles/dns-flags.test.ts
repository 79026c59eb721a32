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

test.each([
  ['--trusted-range 10.0.0.0/8 --trusted-identity east', ['10.0.0.0/8'], ['east']],
  ['--peer 10.0.0.0/8 --peer-identity east', ['10.0.0.0/8'], ['east']],
  ['--trusted-range 10.0.0.0/8 --peer 10.1.0.0/16', ['10.0.0.0/8', '10.1.0.0/16'], []],
])('portolan dns %s -> these resolvers are trusted', async (words, ranges, identities) => {
  const { flags } = await parse(words);
  expect((await trustOf(createRealHost(), flags)).trusted).toEqual({ ranges, identities });
});

test('portolan dns --help -> lists the trusted flags, not their earlier names', async () => {
  const { help } = await parse('--cluster-id east');
  expect(help).toContain('--trusted-key');
  expect(help).not.toMatch(/--peer(-identity|-key)? /);
});

test('portolan dns --trusted-range nonsense -> names the flag', async () => {
  const { flags } = await parse('--cluster-id east --trusted-range nonsense');
  expect(() => checkFlags(flags)).toThrow('--trusted-range nonsense: want an address or a range');
});
