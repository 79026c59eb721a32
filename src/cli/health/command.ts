// `portolan doctor`: checks one or several clusters at the same time, and says what is wrong, what it means and what to do.

import { type Command, Option } from 'commander';
import { allChecks } from '../../doctor/checks/index.ts';
import { type Severity, severities } from '../../doctor/codes.ts';
import { diagnose } from '../../doctor/diagnosis.ts';
import type { AskedName } from '../../doctor/facts.ts';
import type { Client } from '../../kube/client/client.ts';
import { findHome } from '../../kube/client/kubeconfig.ts';
import { resolveName } from '../../proxy/connectivity/prober.ts';
import { connectionProblems } from '../connectivity.ts';
import { usageError } from '../exit-codes.ts';
import { formatOutput, outputOption, parseOutput } from '../table.ts';
import { verbs } from '../verbs.ts';
import { parseTimeout } from '../wait.ts';
import { addHomesOptions, type ClusterSetDeps, type HomeFlags, type HomesFlags, homesOf } from '../with-home.ts';
import { namesToAsk } from './ask-parts.ts';
import { readCluster } from './read.ts';
import { diagnosisText, exitOf } from './report.ts';

interface DoctorFlags extends HomesFlags {
  readonly failOn: string;
  readonly timeout: string;
  readonly output: string;
  readonly dns?: string;
  readonly connect: string[];
  readonly before?: Step;
  readonly tokenFile?: string;
  readonly set: string[];
  readonly values?: string;
}

const steps = ['install', 'join'] as const;
export type Step = (typeof steps)[number];

export interface BeforeFlags extends HomeFlags {
  readonly set: readonly string[];
  readonly values?: string | undefined;
  readonly tokenFile?: string | undefined;
}

/** Checks before a command, for the same reasons as the command would refuse. */
type CheckStep = (deps: ClusterSetDeps, step: Step, flags: BeforeFlags) => Promise<void>;

export function addDoctorCommand(program: Command, deps: ClusterSetDeps, checkStep: CheckStep): void {
  addHomesOptions(program.command('doctor').description(verbs.doctor))
    .option('--fail-on <severity>', 'end with 7 from this severity on: info, warning or error', 'error')
    .option('--timeout <seconds>', 'time limit for reading one cluster', '20')
    .option('--dns <host:port>', 'one more resolver to ask, beside those that report to the home')
    .option('--connect <namespace/name...>', 'services to connect to from here, by their clusterset name', [])
    .addOption(
      new Option('--before <command>', 'only what that command would refuse; changes nothing').choices([...steps]),
    )
    .option('--token-file <file>', 'with --before join: the join token; - is standard input')
    .option('--set <path=value...>', 'with --before install: as for portolan install', [])
    .option('--values <file>', 'with --before install: as for portolan install')
    .option(...outputOption)
    .addHelpText(
      'after',
      `
Clusters are checked at the same time. Codes are explained in docs/codes.md.
Ends with 0 if nothing is found, 7 for findings, 8 if a check could not run, 6 if no home answers.
Examples:
  portolan doctor
  portolan doctor --kubeconfig east.kubeconfig west.kubeconfig --fail-on warning
  portolan doctor --before install --set dns.clusterIP=10.96.0.20
  portolan doctor --before join --token-file east.token
  portolan doctor -o json | jq '.findings[] | .code'`,
    )
    .action(async (flags: DoctorFlags) => {
      const format = parseOutput(flags.output);
      const failOn = parseSeverity(flags.failOn);
      const timeoutMs = parseTimeout(flags.timeout);
      const { world, host } = deps;
      const homes = homesOf(flags);
      if (flags.before !== undefined) {
        const { set, values, tokenFile } = flags;
        for (const home of homes) await checkStep(deps, flags.before, { set, values, tokenFile, ...home });
        return;
      }
      if (flags.dns !== undefined && homes.length > 1) throw usageError('--dns: name one cluster with it, not several');
      const accesses = await Promise.all(homes.map((home) => findHome({ host, clock: world.clock, ...home })));
      const thorough = {
        names: (client: Client) => askNames(client, flags.dns),
        connections: (client: Client) => connectionProblems(deps, client, flags),
      };
      const clusters = await Promise.all(accesses.map((access) => readCluster({ world, access, timeoutMs, thorough })));
      const value = diagnose(clusters, allChecks);
      const names = value.findings.map(({ code }) => code);
      for (const line of formatOutput(format, { value, names, text: () => diagnosisText(value) })) deps.print(line);
      deps.setExitCode(exitOf(value, failOn));
    });
}

function parseSeverity(text: string): Severity {
  const severity = severities.find((one) => one === text);
  if (severity === undefined) throw usageError(`--fail-on ${text}: write ${severities.join(', ')}`);
  return severity;
}

async function askNames(client: Client, resolver: string | undefined): Promise<readonly AskedName[]> {
  if (resolver === undefined) return [];
  return Promise.all(
    (await namesToAsk(client)).map(async ({ fullName, service, ips }) => {
      const answer = await resolveName(fullName, resolver);
      const got = 'error' in answer ? answer.error : answer.addresses;
      return { name: `${fullName} (${service})`, resolver, wanted: ips, got };
    }),
  );
}
