// The table of access as its keeper wants it: rules, elements, and what a round of changes writes. What was counted is left alone.

import type { TablePlan } from '../nft/read-back.ts';
import type { PresentTable } from '../nft/script.ts';
import type { KeptTable, TableChange } from '../nft/table-keeper.ts';
import { accessTableName } from './names.ts';
import type { AccessPlan } from './plan.ts';
import {
  accessRefill,
  accessRules,
  changeScript,
  declarations,
  declareScript,
  removeAccessScript,
  seenSets,
} from './table.ts';

/** `onTaken` is called after tuples were taken away. */
export function keptTable(plan: AccessPlan, onTaken: () => void): KeptTable {
  const seen: ReadonlySet<string> = new Set(seenSets);
  const tablePlan: TablePlan = {
    name: accessTableName,
    get tracked() {
      return new Set(
        declarations(plan.config)
          .map(({ name }) => name)
          .filter((name) => !seen.has(name)),
      );
    },
    untracked: seen,
    rules: () => accessRules(plan.config),
    elements: () => plan.elements(),
  };
  return {
    plan: tablePlan,
    takeChange: (): TableChange | undefined => {
      const difference = plan.takeChange();
      const { added, deleted } = difference;
      if (added.length + deleted.length === 0) return undefined;
      return { script: changeScript(difference), ...(deleted.length > 0 ? { onDone: onTaken } : {}) };
    },
    refill: (present: PresentTable | undefined) => {
      plan.takeChange();
      return accessRefill(plan, present);
    },
    declare: () => declareScript(plan.config),
    replace: () => `${removeAccessScript}${declareScript(plan.config)}`,
  };
}
