// `npm run check:kubernetes -- --suite e2e.test --kubectl kubectl`: Kubernetes' own end-to-end cases that need no Pods
// (conformance/kubernetes-cases.txt) against an embedded home. The suite is Kubernetes' test binary, made with
// `go test -c ./test/e2e` in its sources. Prints how many pass and why the others do not; it is not among the tests, because
// it takes a quarter of an hour and a binary that takes another to build.

import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type ApiProcess, connect, startApi } from './support/api-process.ts';

const { values } = parseArgs({
  options: {
    suite: { type: 'string' },
    kubectl: { type: 'string', default: 'kubectl' },
    cases: { type: 'string', default: 'conformance/kubernetes-cases.txt' },
    width: { type: 'string', default: '4' },
    only: { type: 'string', default: '' },
  },
});
if (values.suite === undefined) throw new Error('give --suite, the compiled test/e2e of Kubernetes');

interface Report {
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly LeafNodeText: string;
  readonly State: string;
  readonly Failure?: { readonly Message: string };
}

/** The suite begins only where a node is ready. No kubelet is behind it. */
async function addNode(api: ApiProcess): Promise<void> {
  const connection = await connect(api.kubeconfig);
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node-1', labels: { 'kubernetes.io/os': 'linux' } },
  };
  const at = new Date().toISOString();
  const ready = { type: 'Ready', status: 'True', reason: 'Check', lastHeartbeatTime: at, lastTransitionTime: at };
  const status = { conditions: [ready], addresses: [{ type: 'InternalIP', address: '127.0.0.1' }] };
  const made = await connection.request('POST', '/api/v1/nodes', node);
  const set = await connection.request('PUT', '/api/v1/nodes/node-1/status', { ...node, status });
  connection.close();
  if (made.status !== 201 || set.status !== 200) throw new Error(`the node was refused: ${made.body} ${set.body}`);
}

/** One process of the suite runs its cases one after the other. */
async function runCases(
  directory: string,
  kubeconfig: string,
  cases: readonly string[],
  index: number,
): Promise<Report[]> {
  const wanted = new Set(cases);
  const focus = cases.map((name) => `${name.replace(/[\\.+*?()[\]{}|^$]/g, '\\$&')}( \\[|$)`).join('|');
  const report = join(directory, `${index}.json`);
  const flags = ['provider=skeleton', 'allowed-not-ready-nodes=-1', 'minStartupPods=0', 'disable-log-dump'];
  const ginkgo = ['no-color', 'timeout=3h', `focus=${focus}`, `json-report=${report}`].map((flag) => `ginkgo.${flag}`);
  const own = [`kubeconfig=${kubeconfig}`, `kubectl-path=${values.kubectl}`];
  const log = openSync(join(directory, `${index}.log`), 'w');
  const child = spawn(
    resolve(values.suite!),
    [...flags, ...own, ...ginkgo].map((flag) => `-${flag}`),
    {
      stdio: ['ignore', log, log],
      cwd: directory,
    },
  );
  await new Promise((done) => child.once('exit', done));
  closeSync(log);
  const suites = JSON.parse(readFileSync(report, 'utf8')) as { SpecReports: Report[] | null }[];
  return suites.flatMap(({ SpecReports }) => SpecReports ?? []).filter((each) => wanted.has(nameOf(each)));
}

function nameOf({ ContainerHierarchyTexts, LeafNodeText }: Report): string {
  return [...(ContainerHierarchyTexts ?? []), LeafNodeText].join(' ');
}

const names = readFileSync(values.cases, 'utf8')
  .split('\n')
  .filter((name) => name !== '' && name.includes(values.only));
const width = Number(values.width);
// Cases that want the server for themselves share a process; the others go round.
const isAlone = (name: string) => name.includes('[Serial]');
const shared = names.filter((name) => !isAlone(name));
const lanes = Array.from({ length: width }, (_, lane) => shared.filter((_name, index) => index % width === lane));
lanes[0]!.push(...names.filter(isAlone));
const directory = mkdtempSync(join(tmpdir(), 'portolan-kubernetes-cases-'));
const api = await startApi({ data: join(directory, 'home'), args: ['--snapshots', 'none'] });
try {
  await addNode(api);
  const busy = lanes.filter((lane) => lane.length > 0);
  const reports = (
    await Promise.all(busy.map((lane, index) => runCases(directory, api.kubeconfig, lane, index)))
  ).flat();
  const passed = reports.filter(({ State }) => State === 'passed');
  for (const report of reports.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1))) {
    if (report.State === 'passed') continue;
    const why = report.Failure?.Message.split('\n').filter((line) => line.trim() !== '')[0];
    console.log(`${report.State}: ${nameOf(report)}\n    ${why?.slice(0, 200) ?? ''}`);
  }
  console.log(`${passed.length} of ${names.length} pass`);
} finally {
  await api.stop();
  rmSync(directory, { recursive: true });
}
