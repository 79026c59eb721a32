// The clusterset as its admin sees it at the broker: members, their leases and what they export. Imports and the parts of a
// member lie in its own home, so nothing is known of them here.

import type { Clock } from '../../base/world.ts';
import { clusterStatus } from '../../clusterset/explain/cluster-status.ts';
import { predict } from '../../clusterset/explain/predict.ts';
import { refusedRecords } from '../../clusterset/explain/refused-records.ts';
import { mergedStatus } from '../../clusterset/explain/service-status.ts';
import { brokerFacts, listAll, readSetState } from '../../clusterset/explain/set-state.ts';
import { type ClusterSet, clusterSetType } from '../../clusterset/kinds/cluster-set.ts';
import type { MembershipRecord } from '../../clusterset/membership/membership.ts';
import type { Client } from '../../kube/client/client.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { readParts } from '../parts.ts';
import { setNotes } from './status-notes.ts';
import type { Status } from './status-report.ts';

/** One for each clusterset that this home is the broker of; none if it is no broker. */
export async function readBrokerStatus(broker: Client, request: BrokerRequest): Promise<Status[]> {
  const sets = await listAll<ClusterSet>(broker, clusterSetType).catch((error: unknown) => {
    if (isNotFound(error)) return [];
    throw error;
  });
  return Promise.all(sets.map(({ metadata }) => readSet(broker, { clusterset: metadata.name, ...request })));
}

interface BrokerRequest {
  readonly server: string;
  readonly clock: Pick<Clock, 'wallMs'>;
}

interface SetRequest extends BrokerRequest {
  readonly clusterset: string;
}

async function readSet(broker: Client, { clusterset, server, clock }: SetRequest): Promise<Status> {
  const state = await readSetState({ home: broker, broker, membership: { clusterset } as MembershipRecord, clock });
  const prediction = predict(brokerFacts(state), state.policy);
  return {
    clusterset,
    broker: server,
    cluster: '',
    brokerProblem: undefined,
    clusters: state.members.map((member) => clusterStatus(member, state)),
    services: prediction.keys.map((key) => ({
      ...mergedStatus(key, prediction),
      import: 'seen at the broker' as const,
    })),
    refused: state.members.flatMap(refusedRecords),
    stale: [],
    behind: [],
    unpublished: [],
    notes: setNotes(state),
    parts: await readParts(broker, clock),
  };
}
