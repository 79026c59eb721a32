// The report of a release: what was run on what, and what passed. Pure but for the facts about the clusters.

import { execFileSync } from 'node:child_process';
import { release } from 'node:os';
import { version } from '../../src/base/version.ts';
import type { SuiteReport } from './suite.ts';

export interface Environment {
  readonly kernel: string;
  /** One line for each cluster. */
  readonly clusters: readonly string[];
}

export interface About {
  readonly environment: Environment;
  readonly policies: string;
  readonly suiteVersion: string;
  /** Where those of the suite came from. */
  readonly images: string;
  readonly contexts: readonly string[];
}

interface NodeInfo {
  readonly kubeletVersion: string;
  readonly containerRuntimeVersion: string;
  readonly kernelVersion: string;
  readonly osImage: string;
}

/** What kubectl says of the clusters' nodes. */
export function environmentOf({
  kubeconfig,
  contexts,
}: {
  kubeconfig: string;
  contexts: readonly string[];
}): Environment {
  const clusters = contexts.map((context) => {
    const args = ['--kubeconfig', kubeconfig, '--context', context, 'get', 'nodes', '-o', 'json'];
    const { items } = JSON.parse(execFileSync('kubectl', args, { encoding: 'utf8' })) as {
      items: { status: { nodeInfo: NodeInfo } }[];
    };
    const infos = new Set(
      items.map(({ status: { nodeInfo: info } }) =>
        [
          `Kubernetes ${info.kubeletVersion}`,
          info.containerRuntimeVersion,
          `Linux ${info.kernelVersion}`,
          info.osImage,
        ].join(', '),
      ),
    );
    return `${context}: ${items.length === 0 ? 'no nodes' : `${items.length} node(s), ${[...infos].join('; ')}`}`;
  });
  return { kernel: release(), clusters };
}

export function reportText(runs: readonly SuiteReport[], about: About): string {
  const kinds = new Map<string, number[]>();
  for (const [index, { groups }] of runs.entries())
    for (const { name, tests } of groups)
      for (const { labels, passed } of tests) {
        const key = `| ${name} | ${labels.join(', ') || '-'} |`;
        const counts = kinds.get(key) ?? runs.flatMap(() => [0, 0]);
        kinds.set(key, counts);
        counts[2 * index]! += passed ? 1 : 0;
        counts[2 * index + 1]! += 1;
      }
  const rows = [...kinds].map(
    ([key, counts]) => `${key} ${runs.map((_, index) => ofTotal(counts, index)).join(', ')} |`,
  );
  const failed = runs.flatMap(({ groups }, index) =>
    groups.flatMap(({ tests }) =>
      tests.filter(({ passed }) => !passed).map(({ desc, message }) => `- run ${index + 1}: ${desc}: ${message}`),
    ),
  );
  return `# Conformance of Portolan ${version}
${runs.map(({ passed, total, seconds }, index) => `Run ${index + 1}: **${passed} of ${total}**, ${seconds} s.`).join(' ')}

| | |
| --- | --- |
| suite | kubernetes-sigs/mcs-api, folder conformance, ${about.suiteVersion}, unchanged |
${about.environment.clusters.map((line) => `| cluster | ${line} |`).join('\n')}
| kernel of this machine | Linux ${about.environment.kernel} |
| policies | ${about.policies} |
| images of the suite | ${about.images} |

How to repeat it: [docs/conformance.md](../docs/conformance.md).

| requirement | labels | passed, in each run |
| --- | --- | --- |
${rows.join('\n')}
${failed.length === 0 ? '' : `\nNot passed:\n${failed.join('\n')}\n`}`;
}

const ofTotal = (counts: readonly number[], index: number) => `${counts[2 * index]} of ${counts[2 * index + 1]}`;
