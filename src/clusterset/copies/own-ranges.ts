// The ranges of this cluster's own pods and services, where no other member may have endpoints: those it joined with, as they
// lie in its record at the broker, and the address of its API server, as its home has it.

import type { Log } from '../../base/log.ts';
import { type IpRange, parseRange } from '../../base/net/ip.ts';
import type { Timer, World } from '../../base/world.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import type { InformerReader } from '../../kube/controller/informer.ts';
import { isForbidden } from '../../kube/objects/api-error.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import type { Service } from '../../kube/objects/service.ts';
import { readMemberRecord } from '../membership/member-record.ts';
import { memberRecordName } from '../rules/broker-layout.ts';

export interface OwnRangesOptions {
  readonly world: Pick<World, 'timers'>;
  readonly log: Log;
  readonly broker: Client;
  /** This member's own at the broker. */
  readonly namespace: string;
  readonly services: InformerReader<Service>;
  readonly onRanges: (ranges: readonly IpRange[]) => void;
  /** The Pod ranges that it joined with, as texts. */
  readonly onPodRanges: (ranges: readonly string[]) => void;
}

export interface OwnRanges {
  start(): void;
  stop(): void;
  /** Reads the record; throws if the broker does not answer. */
  read(): Promise<void>;
}

const apiServer = 'default/kubernetes';
/** Joining again writes other ranges. */
const rereadMs = 600_000;

export function followOwnRanges({
  world,
  log,
  broker,
  namespace,
  services,
  onRanges,
  ...options
}: OwnRangesOptions): OwnRanges {
  let joined: readonly string[] = [];
  let api: readonly string[] = [];
  let timer: Timer | undefined;
  let isStopped = false;
  const tell = () => onRanges([...joined, ...api].flatMap((text) => parseRange(text) ?? []));

  async function read(): Promise<void> {
    const ref = { namespace, name: memberRecordName };
    const record = await getOrUndefined<ConfigMap>(broker, configMapType, ref).catch((error: unknown) => {
      if (!isForbidden(error)) throw error;
      log.warn('own ranges cannot be read: the broker does not let this member read its record', { error });
      return undefined;
    });
    if (record === undefined) return;
    const { podRanges, serviceRanges } = readMemberRecord(record);
    joined = [...podRanges, ...serviceRanges];
    tell();
    options.onPodRanges(podRanges);
  }

  function readAgain(): void {
    if (isStopped) return;
    timer = world.timers.after(rereadMs, () => {
      read().catch((error: unknown) => log.info('own ranges cannot be read; those known stay', { error }));
      readAgain();
    });
  }

  return {
    start: () => {
      services.on((key, next) => {
        if (key !== apiServer) return;
        api = (next?.spec?.clusterIPs ?? []).filter((ip) => ip !== 'None');
        tell();
      });
      readAgain();
    },
    stop: () => {
      isStopped = true;
      timer?.cancel();
    },
    read,
  };
}
