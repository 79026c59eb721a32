// Command lines that nobody types: those of systemd units and of containers. Our own parser takes each of them, so that none
// names a flag that does not exist.

import { Command } from 'commander';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { imageOf } from '../../install/image.ts';
import { objectsByPart } from '../../install/objects.ts';
import { unitFiles } from '../../install/units.ts';
import { defaultValues, partNames, type Values } from '../../install/values.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import { takeFlagsFromEnvironment } from '../environment.ts';
import { addBootstrapCommand } from '../xds/bootstrap.ts';
import { addDrainGatewayCommand } from '../xds/drain.ts';
import { addRenewCommand } from '../xds/renew.ts';
import { addAgentCommand } from './agent.ts';
import { addApiCommand } from './api.ts';
import { addAuthorityCommand } from './authority.ts';
import { type AuthorityFlags, checkAuthorityFlags } from './authority-flags.ts';
import { addDashboardCommand } from './dashboard.ts';
import { addDnsCommand } from './dns.ts';
import { checkFlags, type DnsFlags } from './dns-flags.ts';
import { addPeeringCommand } from './peering.ts';
import { addProxyCommand } from './proxy.ts';
import { addXdsCommand } from './xds.ts';

afterEach(() => vi.unstubAllEnvs());

const never = (() => {}) as never;

/** The flags by which a command would run, by its name. */
async function parsed(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<[command: string, flags: Record<string, unknown>]> {
  const program = new Command('portolan').enablePositionalOptions();
  addApiCommand(program, { run: never, rotate: never, migrate: never });
  for (const add of [addAgentCommand, addAuthorityCommand, addDnsCommand, addPeeringCommand, addProxyCommand])
    add(program, never);
  const xds = addXdsCommand(program, never);
  addBootstrapCommand(xds, never);
  addRenewCommand(xds, never);
  addDrainGatewayCommand(xds, never);
  addDashboardCommand(program, never, { run: never, token: never });
  let found: [string, Record<string, unknown>] = ['none', {}];
  const record = (command: Command) => {
    command
      .exitOverride()
      .configureOutput({ writeErr: () => {} })
      .action(() => {
        found = [command.name(), command.opts()];
      });
    for (const one of command.commands) record(one);
  };
  for (const command of program.exitOverride().commands) record(command);
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  takeFlagsFromEnvironment(program);
  await program.parseAsync(words, { from: 'user' });
  return found;
}

describe('systemd units', () => {
  const isOfGateway = (name: string) => name.startsWith('portolan-gateway');

  test('those of a gateway -> each command of ours with flags that exist; it is drained before it ends', async () => {
    const units = unitFiles().filter(({ name }) => isOfGateway(name));
    const lines = units.flatMap(({ text }) => [...text.matchAll(/^(Exec\w+)=\/usr\/bin\/portolan (.+)$/gm)]);
    const found = await Promise.all(lines.map(async ([, when, line]) => [when, (await parsed(line!.split(' ')))[0]]));
    expect(found).toEqual([
      ['ExecStartPre', 'bootstrap'],
      ['ExecStop', 'drain'],
      ['ExecStart', 'renew'],
    ]);
    const [, admin] = /--admin (\S+)/.exec(lines[0]![2]!)!;
    expect((await parsed(lines[1]![2]!.split(' ')))[1]).toMatchObject({ admin });
    expect(units[0]!.text).toMatch(/^ExecStart=\/usr\/bin\/envoy .*--drain-time-s 4$/m);
    expect(units[1]!.text).toMatch(/^BindsTo=portolan-gateway.service$/m);
    for (const { text } of units) expect(text).toMatch(/^StateDirectory=portolan-gateway$/m);
  });

  const own = unitFiles().filter(({ name }) => !isOfGateway(name));
  test.each(own)('$name -> a command with flags and variables that exist', async ({ name, text, settings }) => {
    const [, line = ''] = /^ExecStart=\/usr\/bin\/portolan (.+)$/m.exec(text) ?? [];
    const [command, flags] = await parsed(line.split(' '), settings);
    const part = name.replace(/^portolan-|\.service$/g, '');
    expect(command).toBe(part);
    const flag = { api: 'data', authority: 'brokerKubeconfig' }[part] ?? 'kubeconfig';
    const read = Object.keys(settings).map((one) => one.slice('PORTOLAN_'.length).toLowerCase().replace(/_./g, upper));
    expect(Object.keys(flags)).toEqual(expect.arrayContaining([flag, ...read]));
    for (const variable of Object.keys(settings)) expect(Object.values(flags)).toContain(settings[variable]);
    if (part === 'dns') expect(() => checkFlags(flags as unknown as DnsFlags)).not.toThrow();
    if (part === 'authority') expect(() => checkAuthorityFlags(flags as unknown as AuthorityFlags)).not.toThrow();
  });
});

const upper = (text: string) => text.slice(1).toUpperCase();

interface Pod {
  readonly containers: readonly { readonly image: string; readonly args: readonly string[] }[];
  readonly initContainers?: Pod['containers'];
}

describe('containers', () => {
  const everything = Object.fromEntries(
    partNames.map((name) => [name, { ...defaultValues[name], enabled: true }]),
  ) as unknown as Values;
  const dns = { ...everything.dns, forward: '192.0.2.53' };

  test.each([...objectsByPart({ ...defaultValues, ...everything, dns })])(
    '%s -> commands with flags that exist',
    async (name, objects) => {
      const workloads = objects.filter(({ type }) => type.group === 'apps').map(({ object }) => object);
      expect(workloads).toHaveLength(1);
      const { template } = (workloads[0] as KubernetesObject & { spec: { template: { spec: Pod } } }).spec;
      const { containers, initContainers = [] } = template.spec;
      const ours = [...initContainers, ...containers].filter(({ image }) => image === imageOf(defaultValues.image));
      const commands = await Promise.all(ours.map(async ({ args }) => (await parsed(args))[0]));
      const isEnvoy = name === 'ingress' || name === 'envoy' || name === 'gateway';
      expect(commands).toEqual(isEnvoy ? ['bootstrap', 'renew'] : [name]);
    },
  );
});

test('a flag that does not exist -> refused by the same parser', async () => {
  await expect(parsed(['dns', '--cluster-idd', 'east'])).rejects.toThrow('unknown option');
});
