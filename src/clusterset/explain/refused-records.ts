// Records of members that break the rules and are not counted, each with the reason. Pure.

import { recordProblem } from '../rules/shard-record.ts';
import type { MemberState } from './set-state.ts';

export interface RefusedRecord {
  readonly cluster: string;
  readonly service: string;
  readonly why: string;
}

export function refusedRecords({ id, shards }: MemberState): RefusedRecord[] {
  return [...shards].flatMap(([service, record]) => {
    const why = recordProblem(record);
    return why === undefined ? [] : [{ cluster: id, service, why }];
  });
}
