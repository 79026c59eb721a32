// Reads a shard from one line that a person can write: `east 2020 http:80 dns:53/UDP grpc:90=h2c type=Headless`.
// For tests, simulations and examples; everything not said is the default.

import type { IpFamily } from '../../../../base/net/ip.ts';
import type { Protocol, SessionAffinity } from '../../../../kube/objects/service.ts';
import type { ImportType } from '../../../kinds/service-import.ts';
import type { Shard, ShardPort } from '../shard.ts';

export function shardOf(line: string): Shard {
  const [cluster = '', year = '', ...words] = line.trim().split(/\s+/);
  const value = (name: string) => words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1);
  const timeout = value('timeout');
  return {
    cluster,
    exportedAt: `${year}-01-01T00:00:00Z`,
    type: (value('type') ?? 'ClusterSetIP') as ImportType,
    ports: words.filter((word) => portWord.test(word)).map(portOf),
    sessionAffinity: (value('affinity') ?? 'None') as SessionAffinity,
    affinityTimeoutSeconds: timeout === undefined ? undefined : Number(timeout),
    internalTrafficPolicy: value('internal'),
    trafficDistribution: value('distribution'),
    ipFamilies: (value('families') ?? 'IPv4').split(',') as IpFamily[],
    labels: mapOf(words, 'label:'),
    annotations: mapOf(words, 'annotation:'),
  };
}

const portWord = /^([a-z0-9-]*):(\d+)(?:\/(\w+))?(?:=(\S+))?$/;

function portOf(word: string): ShardPort {
  const [, name = '', port, protocol = 'TCP', appProtocol] = portWord.exec(word) ?? [];
  return {
    name,
    port: Number(port),
    protocol: protocol as Protocol,
    appProtocol,
  };
}

function mapOf(words: readonly string[], prefix: string): Record<string, string> {
  const pairs = words.filter((word) => word.startsWith(prefix)).map((word) => word.slice(prefix.length).split('='));
  return Object.fromEntries(pairs.map(([key = '', value = '']) => [key, value]));
}
