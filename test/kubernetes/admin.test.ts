// The admin endpoints of Pods, asked through pods/proxy of a real API server. There is no kubelet: parts are local processes,
// and their Pods are objects whose address is one of this machine.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ownAddress } from '../support/own-address.ts';
import { run, runPortolan } from '../support/portolan.ts';
import { until } from './flows.ts';
import { type FlowHome, startFlowHome, system } from './homes.ts';
import { type RunningPart, RunningParts } from './parts.ts';

const name = 'checkout.shop.svc.clusterset.local';

describe('admin endpoints of Pods', () => {
  const parts = new RunningParts();
  const directory = mkdtempSync(join(tmpdir(), 'portolan-admin-'));
  const address = ownAddress();
  let home: FlowHome;
  let dns: RunningPart;
  let proxy: RunningPart;

  beforeAll(async () => {
    home = await startFlowHome('real', 'east');
    await home.type('install --set dns.clusterId=east');
    home.apply(
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
      {
        apiVersion: 'multicluster.x-k8s.io/v1alpha1',
        kind: 'ServiceImport',
        metadata: { name: 'checkout', namespace: 'shop' },
        spec: { type: 'ClusterSetIP', ips: ['127.77.0.9'], ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
      },
    );
    dns = startInPod('dns', ['dns', '--cluster-id', 'east', '--listen', '127.0.0.1:0']);
    proxy = startInPod('proxy', ['proxy', '--mode', 'userspace', '--range', '127.77.0.0/16', '--node', 'one']);
    await until('both are ready', () => [dns, proxy].every((part) => /^ready/m.test(part.log())));
  });
  afterAll(async () => {
    await parts.stop();
    await home?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  function startInPod(part: string, words: readonly string[]): RunningPart {
    const pod = `portolan-${part}-1`;
    addPod(pod);
    return parts.start(home, part, words, { adminListen: '0.0.0.0:0', env: { POD_NAME: pod } });
  }

  function addPod(pod: string): void {
    home.apply({
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: pod, namespace: system } },
      spec: { containers: [{ name: 'main', image: 'none' }] },
    });
    const status = { phase: 'Running', podIP: address, podIPs: [{ ip: address }] };
    home.kubectl(['patch', 'pod', pod, '-n', system, '--subresource=status', '-p', JSON.stringify({ status })]);
  }

  const portOf = (part: RunningPart) => new URL(part.said('admin')).port;
  const portolan = (...words: string[]) => runPortolan([...words, '--kubeconfig', home.kubeconfig]);
  const ask = async (part: RunningPart, path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`http://${address}:${portOf(part)}${path}`, { headers });
    return { status: response.status, text: await response.text() };
  };
  const ticket = (account: string, pod: string) =>
    home.kubectl(['create', 'token', account, '-n', system, '--audience', `portolan-admin/${pod}`]);

  test('pods/proxy -> the API server keeps Authorization to itself, and passes a header of ours on', async () => {
    const seen: IncomingHttpHeaders[] = [];
    const stranger = createServer((request, response) => {
      seen.push(request.headers);
      response.end('{}');
    });
    await new Promise<void>((resolve) => stranger.listen(0, '0.0.0.0', resolve));
    addPod('stranger');
    const { port } = stranger.address() as AddressInfo;
    const path = `/api/v1/namespaces/${system}/pods/stranger:${port}/proxy/status`;
    const headers = ['-H', 'authorization: Bearer admin-token', '-H', 'portolan-ticket: passed on'];
    // Not to be waited for in this process, which passes the connection on.
    expect((await run('curl', ['-sSk', ...headers, `${home.server}${path}`])).out).toBe('{}');
    stranger.close();
    expect(seen).toHaveLength(1);
    expect([seen[0]!.authorization, seen[0]!['portolan-ticket']]).toEqual([undefined, 'passed on']);
  });

  test('another Pod connects -> health and metrics are answered, everything else needs a ticket', async () => {
    for (const part of [dns, proxy]) {
      for (const path of ['/livez', '/readyz', '/metrics'])
        expect([path, (await ask(part, path)).status]).toEqual([path, 200]);
      for (const path of ['/status', `/explain?name=${name}`, '/connectivity?service=shop/checkout', '/querylog']) {
        const { status, text } = await ask(part, path, { authorization: 'Bearer admin-token' });
        expect([path, status, text]).toEqual([path, 401, expect.stringContaining('ask through the home')]);
      }
    }
  });

  test('a ticket -> good for the Pod that it was made for, and of the account of callers alone', async () => {
    const at = async (header: string) => (await ask(dns, '/status', { 'portolan-ticket': header })).status;
    expect(await at(ticket('portolan-admin-caller', 'portolan-dns-1'))).toBe(200);
    expect(await at(ticket('portolan-admin-caller', 'portolan-proxy-1'))).toBe(401);
    expect(await at(ticket('portolan-proxy', 'portolan-dns-1'))).toBe(403);
    expect(await at(home.kubectl(`create token portolan-admin-caller -n ${system}`))).toBe(401);
    expect(await at('admin-token')).toBe(401);
  });

  test('dig, doctor, bug-report -> answered by the Pods', async () => {
    const dug = await portolan('dig', name);
    expect([dug.code, dug.err, dug.out]).toEqual([0, '', expect.stringContaining('127.77.0.9')]);
    const doctor = JSON.parse((await portolan('doctor', '-o', 'json')).out);
    const unasked = doctor.skipped.filter(({ code }: { code: string }) => /^PTL05/.test(code));
    expect(JSON.stringify(unasked)).not.toMatch(/portolan-(dns|proxy)|ticket/);
    const file = join(directory, 'report.tgz');
    expect((await portolan('bug-report', '--output', file)).code).toBe(0);
    const listed = execFileSync('tar', ['-tzf', file], { encoding: 'utf8' });
    for (const part of ['dns', 'proxy']) expect(listed).toMatch(new RegExp(`parts/portolan-${part}-.*/status.txt`));
  });

  test('may proxy to Pods, but make no tickets -> refused with the right that is missing; with it -> answered', async () => {
    home.kubectl(`create serviceaccount ann -n ${system}`);
    home.kubectl(`create role reads -n ${system} --verb=get,list --resource=leases.coordination.k8s.io`);
    home.kubectl(`create role asks -n ${system} --verb=get --resource=pods/proxy`);
    for (const role of ['reads', 'asks'])
      home.kubectl(`create rolebinding ann-${role} -n ${system} --role=${role} --serviceaccount=${system}:ann`);
    const kubeconfig = home.account('ann');
    const refused = await runPortolan(['dig', name, '--kubeconfig', kubeconfig]);
    expect([refused.code, refused.err]).toEqual([
      5,
      expect.stringContaining('cannot create resource "serviceaccounts/token"'),
    ]);
    home.kubectl(
      `create role tickets -n ${system} --verb=create --resource=serviceaccounts/token --resource-name=portolan-admin-caller`,
    );
    home.kubectl(`create rolebinding ann-tickets -n ${system} --role=tickets --serviceaccount=${system}:ann`);
    const dug = await runPortolan(['dig', name, '--kubeconfig', kubeconfig]);
    expect([dug.code, dug.err, dug.out]).toEqual([0, '', expect.stringContaining('127.77.0.9')]);
  });

  test('all along -> the parts had the rights to check', () => {
    expect(home.refusals().filter((line) => !line.includes('/ann '))).toEqual([]);
  });
});
