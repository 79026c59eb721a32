import { describe, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { fillValues, readGiven } from './read-values.ts';

const files: Record<string, string> = {
  '/list': '- a\n',
  '/text': 'a: [\n',
  '/good': 'dns: {clusterId: east}\n',
  '/numbers': 'agent: {cpu: 1}\ndns: {clusterId: 42}\n',
};
const deps = {
  world: new Simulation({ seed: 1 }).world('cli'),
  host: {
    environment: {},
    readText: async (path: string) => files[path],
    run: async () => ({ kind: 'timed out' as const }),
  },
  print: () => {},
};
const read = (flags: { values?: string; set?: string[] }, before?: Record<string, unknown>) =>
  readGiven(deps, { set: [], ...flags }, before);

describe('values of an installation', () => {
  test('those of the last time -> kept under single ones, replaced by a file', async () => {
    const before = { dns: { clusterId: 'east', replicas: 3 } };
    expect(await read({ set: ['dns.replicas=4'] }, before)).toEqual({ dns: { clusterId: 'east', replicas: 4 } });
    expect(before.dns.replicas).toBe(3);
    expect(await read({ values: '/good', set: ['logLevel=warn'] }, before)).toEqual({
      dns: { clusterId: 'east' },
      logLevel: 'warn',
    });
  });

  test('single ones -> texts as they stand, numbers and switches by their meaning', async () => {
    const set = ['dns.clusterId=007', 'listenAddress=[::]', 'dns.clusterIP=', 'dns.replicas=3', 'xds.enabled=true'];
    expect(await read({ set })).toEqual({
      dns: { clusterId: '007', clusterIP: '', replicas: 3 },
      listenAddress: '[::]',
      xds: { enabled: true },
    });
  });

  test('numbers for texts, lists and maps, keys with dots -> as people write them', async () => {
    const set = ['agent.cpu=1', 'dns.clients=[240.0.0.0/4]', 'agent.nodeSelector.kubernetes\\.io/os=linux'];
    const { agent, dns } = fillValues(await read({ values: '/numbers', set }));
    expect([agent.cpu, agent.nodeSelector, dns.clusterId, dns.clients]).toEqual([
      '1',
      { 'kubernetes.io/os': 'linux' },
      '42',
      ['240.0.0.0/4'],
    ]);
  });

  test.each<[string, { values?: string; set?: string[] }]>([
    ['--values /list: expected a map', { values: '/list' }],
    ['--values /list: expected a map', { values: '/list', set: ['logLevel=warn'] }],
    ['--values /none: no such file', { values: '/none' }],
    ['--values /text: this is not YAML', { values: '/text' }],
    ['--set dns.clusterIP: write PATH=VALUE', { set: ['dns.clusterIP'] }],
    ['values: dns.clusterId: expected a string', { set: ['dns.clusterId.x=1'] }],
    ['values: dns: expected a map', { set: ['dns=1'] }],
    ['values: dns.clients: expected a list', { set: ['dns.clients=10.0.0.0/8'] }],
    ['values: agent.nodeSelector: expected a map', { set: ['agent.nodeSelector=linux'] }],
    ['values: colour: no such value', { set: ['colour=red'] }],
  ])('%s', async (message, flags) => {
    await expect(read(flags).then(fillValues)).rejects.toThrow(message);
  });
});
