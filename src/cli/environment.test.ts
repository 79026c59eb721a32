import { Command } from 'commander';
import { afterEach, expect, test, vi } from 'vitest';
import { takeFlagsFromEnvironment } from './environment.ts';

afterEach(() => vi.unstubAllEnvs());

function parse(args: readonly string[]): Record<string, unknown> {
  const program = new Command('portolan');
  const command = program
    .command('serve')
    .requiredOption('--data <dir>', 'where data is')
    .option('--listen <address...>', 'where to listen', ['127.0.0.1:1'])
    .option('--verbose', 'say more')
    .action(() => {});
  takeFlagsFromEnvironment(program);
  program.parse(['serve', ...args], { from: 'user' });
  expect(command.helpInformation()).not.toContain('PORTOLAN_');
  return command.opts();
}

test('environment: options, also required ones, lists and switches -> taken from it', () => {
  vi.stubEnv('PORTOLAN_DATA', '/srv');
  vi.stubEnv('PORTOLAN_LISTEN', '10.0.0.1:53,[::1]:53');
  vi.stubEnv('PORTOLAN_VERBOSE', '1');
  expect(parse([])).toEqual({ data: '/srv', listen: ['10.0.0.1:53', '[::1]:53'], verbose: true });
});

test('environment: the command line says it too -> the command line goes first', () => {
  vi.stubEnv('PORTOLAN_DATA', '/srv');
  expect(parse(['--data', '/home'])).toEqual({ data: '/home', listen: ['127.0.0.1:1'] });
});
