// `portolan unexport`: takes a Service of this cluster back from the clusterset. Says beforehand what would change for
// others when this cluster's word no longer counts.

import type { Command } from 'commander';
import { errorText } from '../../base/log.ts';
import { createHpke } from '../../base/real/hpke.ts';
import { requireMembership, withBroker } from '../../clusterset/explain/consult.ts';
import { readOwnRecord } from '../../clusterset/explain/own-record.ts';
import { type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { madeAnnotation, placementLabel, policyLabel } from '../../clusterset/rules/agent-marks.ts';
import { deleteIfPresent, getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { refusedError } from '../exit-codes.ts';
import { didYouMean, knownServices } from '../suggest.ts';
import { verbs } from '../verbs.ts';
import { addWaitOptions, parseTimeout, type WaitFlags, waitUntil } from '../wait.ts';
import { addHomeOptions, type ClusterSetDeps, type HomeFlags, parseServiceRef, withHome } from '../with-home.ts';
import { changeWarnings, previewHere } from './export.ts';

export function addUnexportCommand(program: Command, deps: ClusterSetDeps): void {
  const command = program
    .command('unexport')
    .description(verbs.unexport)
    .argument('<namespace/name>', 'the Service; it is not deleted')
    .addHelpText('after', '\nExample:\n  portolan unexport shop/checkout --wait');
  addWaitOptions(addHomeOptions(command), 'the broker no longer has it').action(
    async (ref: string, flags: HomeFlags & WaitFlags) => {
      const timeoutMs = parseTimeout(flags.timeout);
      await withHome(deps, flags, async ({ client: home, defaultNamespace }) => {
        const request = { home, ...parseServiceRef(ref, defaultNamespace) };
        for await (const line of unexportService(deps, request)) deps.print(line);
        if (flags.wait) deps.print(await waitForWithdrawal(deps, { ...request, timeoutMs }));
      });
    },
  );
}

interface UnexportRequest {
  readonly home: Client;
  readonly namespace: string;
  readonly name: string;
}

async function* unexportService(deps: ClusterSetDeps, request: UnexportRequest): AsyncGenerator<string> {
  const { home, namespace, name } = request;
  const key = `${namespace}/${name}`;
  const present = await getOrUndefined<ServiceExport>(home, serviceExportType, { namespace, name });
  if (present === undefined) return yield `${key} is not exported${didYouMean(key, await knownServices(home))}`;
  refuseMadeByOthers(present, key);
  try {
    const change = (facts: Parameters<Parameters<typeof previewHere>[1]['change']>[0]) => {
      const exports = new Map(facts.exports);
      exports.delete(key);
      return { ...facts, exports };
    };
    const { preview } = await previewHere(deps, { home, key, change, ids: [] });
    yield* changeWarnings({ ...preview, conflicts: [] });
    for (const line of preview.changes) yield `note: ${line}`;
  } catch (error) {
    yield `note: cannot preview the effect on other clusters: ${errorText(error)}`;
  }
  await deleteIfPresent(home, serviceExportType, { namespace, name });
  yield `${key} is no longer exported`;
}

function refuseMadeByOthers({ metadata: { labels = {}, annotations } }: ServiceExport, key: string): void {
  // A copy of an agent's object carries the label too, and would not be made again.
  if (!annotations?.[madeAnnotation]?.endsWith(`/${key}`)) return;
  const policy = labels[policyLabel];
  if (policy !== undefined) {
    throw refusedError(`export ${key}: ServiceExportPolicy ${policy} would make it again; change what that selects`);
  }
  const template = labels[placementLabel];
  if (template !== undefined) {
    throw refusedError(`export ${key}: FederatedService ${template} would make it again; change that at the broker`);
  }
}

/** Resolves when the record of this cluster is gone from the broker. */
async function waitForWithdrawal(
  deps: ClusterSetDeps,
  { home, namespace, name, timeoutMs }: UnexportRequest & { timeoutMs: number },
): Promise<string> {
  const membership = await requireMembership(home);
  const key = `${namespace}/${name}`;
  const hpke = createHpke(deps.world.random);
  return withBroker(deps.world, membership, (broker) => {
    const look = async () =>
      (await readOwnRecord({ home, broker, membership, hpke, service: { namespace, name } })) === undefined
        ? { done: `${key} is withdrawn` }
        : { waiting: `the agent of cluster ${membership.clusterId} has not removed it from the broker yet` };
    return waitUntil(deps, { what: `unexport ${key}`, timeoutMs, look });
  });
}
