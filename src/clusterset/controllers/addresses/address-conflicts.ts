// The condition AddressConflict of an import: another import names its address, or it names the address of another.
// Imports that this agent does not manage get it too; of their status nothing else is touched.

import { addressConflict } from '../../../addresses/address-conflict.ts';
import { ownerKey } from '../../../addresses/claim.ts';
import { isInRange, parseIp } from '../../../base/net/ip.ts';
import { isNotFound } from '../../../kube/objects/api-error.ts';
import { conditionOf, formatTime, type WantedCondition, withConditions } from '../../../kube/objects/conditions.ts';
import { keyOf } from '../../../kube/objects/object.ts';
import type { AgentContext } from '../../copies/context.ts';
import { importsByAddress } from '../../copies/home-copies.ts';
import { type ServiceImport, serviceImportType } from '../../kinds/service-import.ts';
import { isOurImport } from '../../rules/plan-import.ts';

const type = 'AddressConflict';

/** Empty for an import that has no conflict and never had one. */
export function conflictConditions(context: AgentContext, object: ServiceImport): WantedCondition[] {
  const { copies } = context;
  const found = addressConflict(object.metadata, object.spec?.ips, {
    claimedBy: (name) => {
      const claim = copies.claims.get(name);
      return claim && ownerKey(claim.spec.owner);
    },
    usersOf: (address) => copies.imports.byIndex(importsByAddress, address).map(keyOf),
    // Our own claim may be newer than our copy of the claims.
    isAllocated: (address) => !isOurImport(object) && isAllocated(context, address),
  });
  if (found !== undefined) return [{ type, status: 'True', ...found }];
  if (conditionOf(object.status?.conditions, type) === undefined) return [];
  return [{ type, status: 'False', reason: 'NoConflict', message: 'no other import names its addresses' }];
}

/** The same for an import that another writer manages. */
export async function writeConflict(context: AgentContext, object: ServiceImport): Promise<void> {
  const wanted = conflictConditions(context, object);
  if (wanted.length === 0) return;
  const stamp = { now: formatTime(context.world.clock.wallMs()), observedGeneration: object.metadata.generation };
  const conditions = withConditions(object.status?.conditions, wanted, stamp);
  if (conditions === object.status?.conditions) return;
  try {
    const status = { ...object.status, conditions: [...conditions] };
    await context.home.updateStatus(serviceImportType, { ...object, status });
  } catch (error) {
    // Removed meanwhile: the next event brings the key back.
    if (!isNotFound(error)) throw error;
  }
}

function isAllocated({ policy }: AgentContext, address: string): boolean {
  const ip = parseIp(address);
  const range = ip && policy().ranges.get(ip.family);
  return ip !== undefined && range !== undefined && isInRange(ip, range);
}
