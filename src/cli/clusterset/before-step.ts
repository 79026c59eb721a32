// `portolan doctor --before install|join`: what these commands would refuse, asked before and without changing anything.

import { usageError } from '../exit-codes.ts';
import type { BeforeFlags, Step } from '../health/command.ts';
import { checkBefore } from '../installation/before.ts';
import { joinedClusterId, planInstallation } from '../installation/plan.ts';
import { allDefinitions, type ClusterSetDeps, withHome } from '../with-home.ts';
import { checkJoin, type JoinFlags } from './join.ts';

/** Throws with what stands in the way. */
export async function checkStep(deps: ClusterSetDeps, step: Step, flags: BeforeFlags): Promise<void> {
  await withHome(deps, flags, async ({ client }) => {
    if (step === 'install') {
      const plan = await planInstallation(deps, client, { flags, clusterId: await joinedClusterId(client) });
      const objects = [...plan.objects, plan.record];
      for (const note of await checkBefore(deps, client, { ...plan, objects, definitions: allDefinitions }))
        deps.print(`note: ${note}`);
      return deps.print('nothing stands in the way of portolan install');
    }
    if (flags.tokenFile === undefined) throw usageError('--before join: give the join token with --token-file');
    const usual = { clusterset: '', tokenHours: '168', timeout: '60' };
    const join: JoinFlags = { ...usual, ...flags, tokenFile: flags.tokenFile };
    for (const line of await checkJoin(deps, client, join)) deps.print(line);
  });
}
