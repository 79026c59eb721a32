import { describe, expect, test } from 'vitest';
import type { PortPolicy } from '../../kinds/cluster-set.ts';
import { formatConflict } from './conflicts.ts';
import { mergeShards } from './merge.ts';
import type { Shard } from './shard.ts';
import { shardOf } from './testing/shard-text.ts';

// One line per cluster: id, year of its export, ports as name:number[/protocol][=appProtocol], then what differs from the defaults.
function merge(lines: readonly string[], ports: PortPolicy = 'union') {
  const merged = mergeShards({ shards: lines.map(shardOf), ports });
  if (merged === undefined) throw new Error('nobody exports');
  return merged;
}

function portsText(merged: ReturnType<typeof merge>): string {
  return merged.ports
    .filter((port) => port.isExposed)
    .map((port) => `${port.name}:${port.port}/${port.protocol}${port.appProtocol ? `=${port.appProtocol}` : ''}`)
    .join(' ');
}

function servesText(merged: ReturnType<typeof merge>, cluster: string): string {
  return [...(merged.portNames.get(cluster) ?? [])].map(([own, name]) => `${own}>${name}`).join(' ');
}

function reasons(merged: ReturnType<typeof merge>): string {
  return [...new Set(merged.conflicts.map(({ reason }) => reason))].join(',');
}

describe('merge: ports', () => {
  const table: readonly {
    title: string;
    shards: string[];
    policy?: PortPolicy;
    ports: string;
    serves: Record<string, string>;
    conflicts: string;
  }[] = [
    {
      title: 'all clusters agree -> their ports, no conflict, list order never matters',
      shards: ['east 2020 http:80 dns:53/UDP', 'west 2021 dns:53/UDP http:80'],
      ports: 'dns:53/UDP http:80/TCP',
      serves: { east: 'dns>dns http>http', west: 'dns>dns http>http' },
      conflicts: '',
    },
    {
      title:
        'each has one that the other lacks -> the union, each cluster serves only its own, conflict [002-11, 003-73]',
      shards: ['east 2020 http:80', 'west 2021 admin:81'],
      ports: 'http:80/TCP admin:81/TCP',
      serves: { east: 'http>http', west: 'admin>admin' },
      conflicts: 'PortConflict',
    },
    {
      title: 'the same under intersection -> no port at all, conflict [002-10]',
      shards: ['east 2020 http:80', 'west 2021 admin:81'],
      policy: 'intersection',
      ports: '',
      serves: { east: '', west: '' },
      conflicts: 'PortConflict',
    },
    {
      title: 'intersection with one port in common -> that port',
      shards: ['east 2020 http:80 admin:81', 'west 2021 http:80 debug:82'],
      policy: 'intersection',
      ports: 'http:80/TCP',
      serves: { east: 'http>http', west: 'http>http' },
      conflicts: 'PortConflict',
    },
    {
      title: 'one name for two numbers -> the oldest wins, the other does not serve it [003-74]',
      shards: ['west 2021 http:8080', 'east 2020 http:80'],
      ports: 'http:80/TCP',
      serves: { east: 'http>http', west: '' },
      conflicts: 'PortConflict',
    },
    {
      title: 'two names for one number -> one port under the oldest name, both serve it',
      shards: ['west 2021 web:80', 'east 2020 http:80'],
      ports: 'http:80/TCP',
      serves: { east: 'http>http', west: 'web>http' },
      conflicts: 'PortConflict',
    },
    {
      title: 'name and number match different merged ports -> served by the number it declares',
      shards: ['east 2020 http:80 web:8080', 'west 2021 web:80'],
      ports: 'http:80/TCP web:8080/TCP',
      serves: { east: 'http>http web>web', west: 'web>http' },
      conflicts: 'PortConflict',
    },
    {
      title: 'two unnamed ports -> never a duplicate of the empty name',
      shards: ['east 2020 :80', 'west 2021 :81'],
      ports: ':80/TCP',
      serves: { east: '>', west: '' },
      conflicts: 'PortConflict',
    },
    {
      title: 'one number in two protocols -> two ports [003-75]',
      shards: ['east 2020 dns:53/UDP dns-tcp:53', 'west 2021 dns:53/UDP dns-tcp:53'],
      ports: 'dns-tcp:53/TCP dns:53/UDP',
      serves: { west: 'dns-tcp>dns-tcp dns>dns' },
      conflicts: '',
    },
    {
      title: 'appProtocols differ -> the oldest decides, both serve, conflict [003-75]',
      shards: ['east 2020 http:80=h2c', 'west 2021 http:80'],
      ports: 'http:80/TCP=h2c',
      serves: { east: 'http>http', west: 'http>http' },
      conflicts: 'PortConflict',
    },
    {
      title: 'a shard that lists a name twice -> it counts once',
      shards: ['east 2020 http:80 http:81 web:80'],
      ports: 'http:80/TCP',
      serves: { east: 'http>http' },
      conflicts: '',
    },
  ];
  for (const row of table) {
    test(`merge: ${row.title}`, () => {
      const merged = merge(row.shards, row.policy);
      expect(portsText(merged)).toBe(row.ports);
      for (const [cluster, text] of Object.entries(row.serves)) expect(servesText(merged, cluster)).toBe(text);
      expect(reasons(merged)).toBe(row.conflicts);
    });
  }
});

describe('merge: one value for all', () => {
  test('merge: nobody exports -> nothing', () => {
    expect(mergeShards({ shards: [], ports: 'union' })).toBeUndefined();
  });

  test('merge: types differ -> the oldest decides, the other cluster is left out with its ports [003-76]', () => {
    const merged = merge(['west 2021 http:80 admin:81 type=Headless', 'east 2020 http:80']);
    expect(merged.type).toBe('ClusterSetIP');
    expect(merged.clusters).toEqual(['east']);
    expect(merged.excluded).toEqual(['west']);
    expect(portsText(merged)).toBe('http:80/TCP');
    expect(merged.portNames.has('west')).toBe(false);
    expect(reasons(merged)).toBe('PortConflict,TypeConflict');
  });

  test('merge: exports of the same age -> the smaller cluster id decides [003-72]', () => {
    const merged = merge(['west 2020 http:80 affinity=ClientIP', 'east 2020 http:80']);
    expect(merged.decider.cluster).toBe('east');
    expect(merged.sessionAffinity).toBe('None');
    expect(merged.conflicts[0]?.why).toContain('first by cluster id');
  });

  test('merge: an unreadable timestamp -> never the oldest', () => {
    const shards = ['east 2020 http:80', 'west 2021 http:80'].map(shardOf);
    const lying: Shard = { ...shards[0]!, exportedAt: 'yesterday' };
    expect(mergeShards({ shards: [lying, shards[1]!], ports: 'union' })?.decider.cluster).toBe('west');
  });

  const fields: readonly [string, string, string][] = [
    ['affinity=ClientIP', 'affinity=None', 'SessionAffinityConflict'],
    ['affinity=ClientIP timeout=60', 'affinity=ClientIP', 'SessionAffinityConfigConflict'],
    ['label:tier=gold', 'label:tier=silver', 'LabelsConflict'],
    ['annotation:team=a', '', 'AnnotationsConflict'],
    ['internal=Local', '', 'InternalTrafficPolicyConflict'],
    ['distribution=PreferClose', '', 'TrafficDistributionConflict'],
    ['families=IPv4,IPv6', 'families=IPv4', 'IPFamilyConflict'],
  ];
  for (const [older, newer, reason] of fields) {
    test(`merge: ${older} against ${newer || 'the default'} -> the oldest decides, ${reason} [003-77]`, () => {
      const merged = merge([`west 2021 http:80 ${newer}`, `east 2020 http:80 ${older}`]);
      expect(reasons(merged)).toBe(reason);
      const { decider } = merged;
      expect(decider.cluster).toBe('east');
      expect(merged.labels).toEqual(decider.labels);
      expect(merged.annotations).toEqual(decider.annotations);
      expect(merged.sessionAffinity).toBe(decider.sessionAffinity);
      expect(merged.internalTrafficPolicy).toBe(decider.internalTrafficPolicy);
      expect(merged.trafficDistribution).toBe(decider.trafficDistribution);
      expect(merged.ipFamilies).toEqual(decider.ipFamilies);
    });
  }

  test('merge: ip families in another order -> no conflict', () => {
    expect(reasons(merge(['a 2020 http:80 families=IPv4,IPv6', 'b 2021 http:80 families=IPv6,IPv4']))).toBe('');
  });

  test('merge: everything differs -> all conflicts at once, each once in the reason [002-20, 003-72]', () => {
    const merged = merge([
      'east 2020 http:80 affinity=ClientIP label:a=1 annotation:b=1 internal=Local distribution=PreferClose families=IPv6',
      'north 2021 http:80 type=Headless affinity=None',
      'west 2022 http:81 affinity=ClientIP timeout=5',
    ]);
    expect(reasons(merged)).toBe(
      'PortConflict,TypeConflict,SessionAffinityConflict,SessionAffinityConfigConflict,LabelsConflict,AnnotationsConflict,' +
        'InternalTrafficPolicyConflict,TrafficDistributionConflict,IPFamilyConflict',
    );
  });
});

describe('merge: conflict messages', () => {
  const merged = merge([
    'east 2020 http:80',
    'north 2021 http:80 type=Headless',
    'south 2022 http:80 type=Headless',
    'west 2023 http:80',
  ]);
  const type = merged.conflicts[0]!;

  test('merge: a conflict -> field, winner, why, how many disagree and what would change are said [003-29]', () => {
    expect(formatConflict(type, 'south')).toBe(
      'spec.type: using "ClusterSetIP" of cluster east, the oldest export (2020-01-01T00:00:00Z); ' +
        '2 of 4 clusters disagree (north says "Headless", south says "Headless"), this cluster is one of them; ' +
        'if east left, it would become "Headless" of cluster north',
    );
  });

  test('merge: read by a cluster that agrees -> it is told that it is not the odd one', () => {
    expect(formatConflict(type, 'west')).toContain('this cluster is not one of them');
  });

  test('merge: the successor agrees with the winner -> it would stay', () => {
    const conflicts = merge(['a 2020 http:80', 'b 2021 http:80', 'c 2022 http:81']).conflicts;
    expect(formatConflict(conflicts[0]!, 'a')).toBe(
      'spec.ports[http]: using "http" TCP/80 of cluster a, the oldest export (2020-01-01T00:00:00Z); ' +
        '1 of 3 clusters disagree (c says "http" TCP/81), this cluster is not one of them; if a left, it would stay',
    );
  });

  test('merge: a port of which its winner is the only holder -> it would not be exposed', () => {
    const conflicts = merge(['a 2020 http:80', 'b 2021 http:80 admin:81']).conflicts;
    expect(formatConflict(conflicts[0]!, 'b')).toBe(
      'spec.ports[admin]: using "admin" TCP/81 of cluster b, the oldest export that has this port; ' +
        '1 of 2 clusters disagree (a says no such port), this cluster is not one of them; ' +
        'if b left, this port would not be exposed',
    );
  });

  test('merge: the winner of a name leaves -> the next holder of the name takes it', () => {
    const conflicts = merge(['a 2020 http:80', 'b 2021 http:8080']).conflicts;
    expect(conflicts[0]?.ifWinnerLeft).toBe('it would become "http" TCP/8080 of cluster b');
  });

  test('merge: many disagree -> five are named, the others counted [003-30]', () => {
    const others = ['b', 'c', 'd', 'e', 'f', 'g', 'h'].map((id) => `${id} 2021 http:80 affinity=ClientIP`);
    const text = formatConflict(merge(['a 2020 http:80', ...others]).conflicts[0]!, 'a');
    expect(text).toContain('7 of 8 clusters disagree');
    expect(text).toContain('and 2 more');
  });
});
