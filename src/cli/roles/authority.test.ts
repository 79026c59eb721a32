// The flags of `portolan authority` that list trusted resolvers, and the refusal of `portolan dns` to be one.

import { Command } from 'commander';
import { expect, test, vi } from 'vitest';
import { createRealHost } from '../../base/real/host.ts';
import { takeFlagsFromEnvironment } from '../environment.ts';
import { addAuthorityCommand } from './authority.ts';
import { type AuthorityFlags, checkAuthorityFlags, trustOf } from './authority-flags.ts';
import { addDnsCommand } from './dns.ts';

async function parse(words: string): Promise<{ flags: AuthorityFlags; help: string }> {
  let flags: AuthorityFlags | undefined;
  const program = new Command().exitOverride();
  addAuthorityCommand(program, async (given) => {
    flags = given;
  });
  await program.parseAsync(['authority', ...words.split(' ')], { from: 'user' });
  return { flags: flags!, help: program.commands[0]!.helpInformation() };
}

test('portolan authority --trusted-range, --trusted-identity -> these resolvers are trusted', async () => {
  const { flags, help } = await parse('--federation World. --trusted-range 10.0.0.0/8 --trusted-identity east');
  const trusted = { ranges: ['10.0.0.0/8'], identities: ['east'] };
  expect((await trustOf(createRealHost(), flags)).trusted).toEqual(trusted);
  expect(flags.federation).toBe('world');
  expect(help).toContain('--trusted-key');
});

test('portolan authority --trusted-range nonsense -> names the flag', async () => {
  const { flags } = await parse('--federation world --etcd http://[::1]:1 --trusted-range nonsense');
  expect(() => checkAuthorityFlags(flags)).toThrow('--trusted-range nonsense: want an address or a range');
});

test('portolan authority without a source of records -> names both flags', async () => {
  const { flags } = await parse('--federation world');
  expect(() => checkAuthorityFlags(flags)).toThrow('want --broker-kubeconfig FILE or --etcd URL to read it from');
});

test.each([
  ['--federation world --etcd http://[::1]:1', {}],
  ['--etcd http://[::1]:1 --cluster-id east --federation world', {}],
  ['--cluster-id east', { PORTOLAN_FEDERATION: 'world' }],
])('portolan dns %s %j -> refused, with the command that it is now', async (words, variables) => {
  const program = new Command().exitOverride();
  addDnsCommand(program, async () => {});
  program.commands[0]!.exitOverride().configureOutput({ writeErr: () => {} });
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  takeFlagsFromEnvironment(program);
  const parsed = program.parseAsync(['dns', ...words.split(' ')], { from: 'user' });
  await expect(parsed).rejects.toThrow('portolan authority --federation world, with the same flags');
  vi.unstubAllEnvs();
  expect(program.commands[0]!.helpInformation()).not.toContain('--federation');
});
