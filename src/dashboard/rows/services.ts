// One row for each service of the clusterset: who exports it, what comes of it, and how it stands. From the broker's records
// if the bearer may see them, else from the exports and imports of each home. One row costs what one service has.

import { foresee } from '../../clusterset/explain/foresee.ts';
import { brokerFacts, type SetState } from '../../clusterset/explain/set-state.ts';
import type { ServiceExport } from '../../clusterset/kinds/service-export.ts';
import { offeredEndpoints, standing } from '../../clusterset/rules/leases/staleness.ts';
import { isOffered } from '../../clusterset/rules/networks/remote-endpoint.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import { sourceClusterLabel } from '../../kube/objects/endpoint-slice.ts';
import type { HomeWatch } from '../homes/home-watch.ts';
import { byService } from '../homes/kinds.ts';
import type { ExporterCell, ServiceRow, Standing } from '../wire/rows.ts';
import { idOf, type Landscape, type SetGround, setGroundOf, stateOn } from './landscape.ts';

/** Makes rows one by one. A row is undefined if nobody exports or imports the service. */
export function serviceRows(landscape: Landscape): (key: string) => ServiceRow | undefined {
  const ground = setGroundOf(landscape);
  return (key) => {
    const row = ground === undefined ? fromHomes(landscape, key) : fromBroker(landscape, ground, key);
    return row && withReach(row, landscape);
  };
}

/** A service whose address is not served in some clusters is not fine, whatever its exporters are. */
function withReach(row: ServiceRow, { homes }: Landscape): ServiceRow {
  if (row.standing === 'failed' || row.standing === 'stale') return row;
  const imports = homes.flatMap((watch) => {
    const found = watch.isCurrent() ? watch.member?.imports.get(row.key) : undefined;
    return found === undefined ? [] : [{ cluster: idOf(watch), ready: conditionOf(found.status?.conditions, 'Ready') }];
  });
  const unserved = imports.filter(({ ready }) => ready?.status === 'False').map(({ cluster }) => cluster);
  if (unserved.length === 0) return row;
  const says = `its address is not served in ${unserved.join(', ')}`;
  if (unserved.length === imports.length) return { ...row, standing: 'failed', says };
  const standing = row.standing === 'conflict' ? 'conflict' : 'limited';
  return { ...row, standing, says: row.says === 'served' ? says : `${row.says}; ${says}` };
}

function fromBroker(landscape: Landscape, ground: SetGround, key: string): ServiceRow | undefined {
  const imported = importsOf(landscape, key);
  const ips = [...new Set(imported.flatMap(({ spec }) => spec.ips ?? []))];
  const row = setServiceRow(stateOn(ground, [key]), key, ips);
  return row.exporters.length === 0 && imported.length === 0 ? undefined : row;
}

/** By the rule of `portolan status` and `explain`: a cluster that is not trusted offers nothing, and the others serve. */
export function setServiceRow(all: SetState, key: string, ips: string[]): ServiceRow {
  // Those that do not export it have no part in it.
  const state = { ...all, members: all.members.filter(({ shards }) => shards.size > 0) };
  const foreseen = foresee(brokerFacts(state), state.policy);
  const merge = foreseen.merge(key);
  const counted = new Set(foreseen.counted(key).map(({ cluster }) => cluster));
  const conflicts = merge?.conflicts ?? [];
  const policy = state.policy.staleness;
  const exporters = state.members.flatMap(({ id, shards, verdict }): ExporterCell[] => {
    const shard = shards.get(key);
    if (shard === undefined) return [];
    const differs = conflicts
      .filter(({ disagreeing }) => disagreeing.some(({ cluster }) => cluster === id))
      .map(({ field }) => field);
    const isTrusted = standing(verdict, shard.spec.onStale ?? policy).isTrusted;
    const shown: Standing = !isTrusted ? 'stale' : !counted.has(id) ? 'failed' : differs.length > 0 ? 'conflict' : 'ok';
    return [{ cluster: id, ready: offeredEndpoints(shard, { verdict, policy }), standing: shown, differs }];
  });
  return {
    key,
    type: merge?.type ?? 'withdrawn',
    ips,
    exporters,
    conflicts: [...new Set(conflicts.map(({ field, reason }) => `${reason}: ${field}`))],
    ...standingOf(exporters, conflicts.length),
  };
}

function fromHomes(landscape: Landscape, key: string): ServiceRow | undefined {
  const exporters = landscape.homes.flatMap((watch): ExporterCell[] => {
    const found = watch.member?.exports.get(key);
    return found === undefined ? [] : [cellOf(watch, found, key)];
  });
  const imports = importsOf(landscape, key);
  const sources = new Set(imports.flatMap(({ status }) => (status?.clusters ?? []).map(({ cluster }) => cluster)));
  for (const cluster of sources)
    if (!exporters.some((one) => one.cluster === cluster))
      exporters.push({ cluster, ready: importedReady(landscape, key, cluster), standing: 'ok', differs: [] });
  if (exporters.length === 0 && imports.length === 0) return undefined;
  const conflicts = new Set(
    landscape.homes.flatMap((watch) => {
      const conflict = conditionOf(watch.member?.exports.get(key)?.status?.conditions, 'Conflict');
      return conflict?.status === 'True' ? [conflict.reason] : [];
    }),
  );
  return {
    key,
    type: imports[0]?.spec.type ?? 'not imported',
    ips: [...new Set(imports.flatMap(({ spec }) => spec.ips ?? []))],
    exporters: exporters.sort((a, b) => (a.cluster < b.cluster ? -1 : 1)),
    conflicts: [...conflicts],
    ...standingOf(exporters, conflicts.size),
  };
}

function cellOf(watch: HomeWatch, { status }: ServiceExport, key: string): ExporterCell {
  const cluster = idOf(watch);
  if (!watch.isCurrent()) return { cluster, ready: undefined, standing: 'stale', differs: [] };
  const conflict = conditionOf(status?.conditions, 'Conflict');
  const ready = conditionOf(status?.conditions, 'Ready');
  const isConflict = conflict?.status === 'True';
  const standing =
    ready?.status === 'False'
      ? 'failed'
      : isConflict
        ? 'conflict'
        : ready === undefined || ready.status === 'Unknown'
          ? 'unknown'
          : 'ok';
  return { cluster, ready: readyIn(watch, key, undefined), standing, differs: isConflict ? [conflict.reason] : [] };
}

function importsOf({ homes }: Landscape, key: string) {
  return homes.flatMap(({ member }) => member?.imports.get(key) ?? []);
}

function importedReady({ homes }: Landscape, key: string, cluster: string): number | undefined {
  const counts = homes.flatMap((watch) => (watch.isCurrent() ? readyIn(watch, key, cluster) : []));
  return counts.length === 0 ? undefined : Math.max(...counts);
}

/** Ready endpoints of its own service, or those imported from a cluster. */
function readyIn({ member }: HomeWatch, key: string, source: string | undefined): number {
  const slices = member?.slices.byIndex(byService, key) ?? [];
  return slices
    .filter(({ metadata }) => metadata.labels?.[sourceClusterLabel] === source)
    .flatMap(({ endpoints }) => endpoints ?? [])
    .filter(isOffered).length;
}

function standingOf(exporters: readonly ExporterCell[], conflicts: number): Pick<ServiceRow, 'standing' | 'says'> {
  const serving = exporters.filter((one) => one.standing === 'ok' || one.standing === 'conflict');
  const stale = exporters.filter((one) => one.standing === 'stale').map(({ cluster }) => cluster);
  if (serving.length === 0 && stale.length > 0)
    return { standing: 'stale', says: `no sign of life of ${stale.join(', ')}` };
  if (serving.length === 0 && exporters.some((one) => one.standing === 'unknown'))
    return { standing: 'unknown', says: 'not known whether it is offered' };
  if (serving.length === 0) return { standing: 'failed', says: 'no cluster offers it' };
  if (serving.every(({ ready }) => ready === 0)) return { standing: 'failed', says: 'no ready endpoint' };
  const without = stale.length === 0 ? '' : `, without ${stale.join(', ')}`;
  if (conflicts > 0) return { standing: 'conflict', says: `clusters disagree${without}` };
  const isUnknown = serving.some(({ ready }) => ready === undefined);
  if (isUnknown) return { standing: 'unknown', says: `endpoints are not known${without}` };
  return { standing: 'ok', says: `served${without}` };
}
