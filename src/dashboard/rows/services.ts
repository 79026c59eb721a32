// One row for each service of the clusterset: who exports it, what comes of it, and how it stands. From the broker's records
// if the bearer may see them, else from the exports and imports of each home. One row costs what one service has.

import { predict } from '../../clusterset/explain/predict.ts';
import { brokerFacts, type SetState } from '../../clusterset/explain/set-state.ts';
import type { ServiceExport } from '../../clusterset/kinds/service-export.ts';
import { memberStatus, offeredEndpoints } from '../../clusterset/rules/leases/staleness.ts';
import { isOffered } from '../../clusterset/rules/networks/remote-endpoint.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import { sourceClusterLabel } from '../../kube/objects/endpoint-slice.ts';
import type { HomeWatch } from '../homes/home-watch.ts';
import { byService } from '../homes/kinds.ts';
import type { ExporterCell, Health, ServiceRow } from '../wire/rows.ts';
import { idOf, type Landscape, type SetAtBroker, setAtBroker, stateOn } from './landscape.ts';

/** Makes rows one by one. A row is undefined if nobody exports or imports the service. */
export function serviceRows(landscape: Landscape): (key: string) => ServiceRow | undefined {
  const source = setAtBroker(landscape);
  return (key) => {
    const row = source === undefined ? fromHomes(landscape, key) : fromBroker(landscape, source, key);
    return row && withReach(row, landscape);
  };
}

/** A service whose address is not served in some clusters is not fine, whatever its exporters are. */
function withReach(row: ServiceRow, { homes }: Landscape): ServiceRow {
  if (row.health === 'failed' || row.health === 'stale') return row;
  const imports = homes.flatMap((watch) => {
    const found = watch.isCurrent() ? watch.member?.imports.get(row.key) : undefined;
    return found === undefined ? [] : [{ cluster: idOf(watch), ready: conditionOf(found.status?.conditions, 'Ready') }];
  });
  const unserved = imports.filter(({ ready }) => ready?.status === 'False').map(({ cluster }) => cluster);
  if (unserved.length === 0) return row;
  const says = `its address is not served in ${unserved.join(', ')}`;
  if (unserved.length === imports.length) return { ...row, health: 'failed', says };
  const health = row.health === 'conflict' ? 'conflict' : 'limited';
  return { ...row, health, says: row.says === 'served' ? says : `${row.says}; ${says}` };
}

function fromBroker(landscape: Landscape, source: SetAtBroker, key: string): ServiceRow | undefined {
  const imported = importsOf(landscape, key);
  const ips = [...new Set(imported.flatMap(({ spec }) => spec.ips ?? []))];
  const row = setServiceRow(stateOn(source, [key]), key, ips);
  return row.exporters.length === 0 && imported.length === 0 ? undefined : row;
}

/** By the rule of `portolan status` and `explain`: a cluster that is not trusted offers nothing, and the others serve. */
export function setServiceRow(all: SetState, key: string, ips: string[]): ServiceRow {
  // Those that do not export it have no part in it.
  const state = { ...all, members: all.members.filter(({ shards }) => shards.size > 0) };
  const prediction = predict(brokerFacts(state), state.policy);
  const merge = prediction.merge(key);
  const counted = new Set(prediction.counted(key).map(({ cluster }) => cluster));
  const conflicts = merge?.conflicts ?? [];
  const policy = state.policy.staleness;
  const exporters = state.members.flatMap(({ id, shards, verdict }): ExporterCell[] => {
    const shard = shards.get(key);
    if (shard === undefined) return [];
    const differs = conflicts
      .filter(({ disagreeing }) => disagreeing.some(({ cluster }) => cluster === id))
      .map(({ field }) => field);
    const isTrusted = memberStatus(verdict, shard.spec.onStale ?? policy).isTrusted;
    const shown: Health = !isTrusted ? 'stale' : !counted.has(id) ? 'failed' : differs.length > 0 ? 'conflict' : 'ok';
    return [{ cluster: id, ready: offeredEndpoints(shard, { verdict, policy }), health: shown, differs }];
  });
  return {
    key,
    type: merge?.type ?? 'withdrawn',
    ips,
    exporters,
    conflicts: [...new Set(conflicts.map(({ field, reason }) => `${reason}: ${field}`))],
    ...healthOf(exporters, conflicts.length),
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
      exporters.push({ cluster, ready: importedReady(landscape, key, cluster), health: 'ok', differs: [] });
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
    ...healthOf(exporters, conflicts.size),
  };
}

function cellOf(watch: HomeWatch, { status }: ServiceExport, key: string): ExporterCell {
  const cluster = idOf(watch);
  if (!watch.isCurrent()) return { cluster, ready: undefined, health: 'stale', differs: [] };
  const conflict = conditionOf(status?.conditions, 'Conflict');
  const ready = conditionOf(status?.conditions, 'Ready');
  const isConflict = conflict?.status === 'True';
  const health =
    ready?.status === 'False'
      ? 'failed'
      : isConflict
        ? 'conflict'
        : ready === undefined || ready.status === 'Unknown'
          ? 'unknown'
          : 'ok';
  return { cluster, ready: readyIn(watch, key, undefined), health, differs: isConflict ? [conflict.reason] : [] };
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

function healthOf(exporters: readonly ExporterCell[], conflicts: number): Pick<ServiceRow, 'health' | 'says'> {
  const serving = exporters.filter((one) => one.health === 'ok' || one.health === 'conflict');
  const stale = exporters.filter((one) => one.health === 'stale').map(({ cluster }) => cluster);
  if (serving.length === 0 && stale.length > 0)
    return { health: 'stale', says: `no sign of life of ${stale.join(', ')}` };
  if (serving.length === 0 && exporters.some((one) => one.health === 'unknown'))
    return { health: 'unknown', says: 'not known whether it is offered' };
  if (serving.length === 0) return { health: 'failed', says: 'no cluster offers it' };
  if (serving.every(({ ready }) => ready === 0)) return { health: 'failed', says: 'no ready endpoint' };
  const without = stale.length === 0 ? '' : `, without ${stale.join(', ')}`;
  if (conflicts > 0) return { health: 'conflict', says: `clusters disagree${without}` };
  const isUnknown = serving.some(({ ready }) => ready === undefined);
  if (isUnknown) return { health: 'unknown', says: `endpoints are not known${without}` };
  return { health: 'ok', says: `served${without}` };
}
