// Installed on a real Kubernetes API server: the objects are accepted as they are, twice, and taken away again.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { asArgs } from '../support/kubectl.ts';
import { runPortolan } from '../support/portolan.ts';
import { KubernetesApiServer, kubeconfigText } from './api-server.ts';

describe('install on Kubernetes', () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-install-'));
  let api: KubernetesApiServer;
  beforeAll(async () => {
    api = await KubernetesApiServer.start();
  });
  afterAll(async () => {
    await api?.stop();
    rmSync(directory, { recursive: true, force: true });
  });
  const portolan = (line: string) => runPortolan([...asArgs(line), '--kubeconfig', api.kubeconfig]);

  test('without the rights -> refused with what is missing, and nothing is changed', async () => {
    api.kubectl('create', 'serviceaccount', 'tenant', '-n', 'default');
    const tenant = join(directory, 'tenant.kubeconfig');
    writeFileSync(tenant, kubeconfigText(api, api.kubectl('create', 'token', 'tenant', '-n', 'default').trim()));
    const { code, err } = await runPortolan(['install', '--kubeconfig', tenant]);
    expect([code, err]).toEqual([
      5,
      expect.stringContaining('installing needs rights that you lack: create namespaces'),
    ]);
    expect(api.kubectl('get', 'namespaces', '-o', 'name')).not.toContain('portolan-system');
  });

  test('all parts -> accepted; again -> nothing is changed', async () => {
    const set = [
      'peering.enabled=true',
      'peering.trustDomain=acme.example',
      'peering.advertise=mesh.acme.example:8008',
    ];
    const more = [
      'authority.enabled=true',
      'authority.federation=world',
      'xds.enabled=true',
      'dns.clusterIP=10.0.0.53',
    ];
    const line = `install ${[...set, ...more].map((one) => `--set ${one}`).join(' ')}`;
    const first = await portolan(line);
    expect([first.code, first.err]).toEqual([0, '']);
    expect(first.out).toContain('created DaemonSet portolan-system/portolan-proxy');
    const deployments = api.kubectl('get', 'deployments', '-n', 'portolan-system', '-o', 'name');
    for (const part of ['agent', 'dns', 'peering', 'authority', 'xds'])
      expect(deployments).toContain(`/portolan-${part}`);
    expect(
      api.kubectl('get', 'service', 'portolan-dns', '-n', 'portolan-system', '-o', 'jsonpath={.spec.clusterIP}'),
    ).toBe('10.0.0.53');
    const second = await portolan(line);
    expect([second.code, second.out]).toEqual([0, expect.stringMatching(/^installed; /)]);
  });

  test('the kustomize base -> accepted by the same API server', () => {
    const applied = api.kubectl('apply', '--server-side', '--force-conflicts', '-k', 'deploy/kustomize/base');
    expect(applied).toContain('deployment.apps/portolan-agent serverside-applied');
  });

  test('uninstall -> parts gone, definitions kept', async () => {
    const { code, out } = await portolan('uninstall');
    expect([code, out]).toEqual([0, expect.stringContaining('removed DaemonSet portolan-system/portolan-proxy')]);
    expect(api.kubectl('get', 'deployments,daemonsets,services,roles', '-n', 'portolan-system', '-o', 'name')).toBe('');
    expect(api.kubectl('get', 'crds', '-o', 'name')).toContain('serviceshards.portolan.dev');
  });

  test('helm template with the default values -> the objects of the kustomize base', async () => {
    const helm = await findHelm(directory);
    if (helm === undefined) return console.log('helm could not be built here (no Go): the chart was not rendered');
    execFileSync(helm, ['lint', 'deploy/chart'], { stdio: 'inherit' });
    const objects = (text: string) =>
      api.kubectl('create', '--dry-run=client', '-o', 'json', '-f', fileOf(directory, text));
    const chart = execFileSync(
      helm,
      ['template', 'portolan', 'deploy/chart', '--include-crds', '--kube-version', '1.35.0'],
      { encoding: 'utf8' },
    );
    const base = api.kubectl('kustomize', 'deploy/kustomize/base');
    expect(sorted(objects(chart))).toEqual(sorted(objects(base)));
    expect(() =>
      execFileSync(helm, ['template', 'x', 'deploy/chart', '--kube-version', '1.35.0', '--set', 'dns.clusterId='], {
        stdio: 'pipe',
      }),
    ).toThrow('dns.clusterId: give the id that the cluster joins with');
  });
});

function fileOf(directory: string, text: string): string {
  const path = join(directory, `${Math.random()}.yaml`);
  writeFileSync(path, text);
  return path;
}

function sorted(list: string): unknown[] {
  const documents = list
    .split(/^(?=\{$)/m)
    .map((text) => JSON.parse(text) as { kind: string; items?: unknown[]; metadata: { name: string } });
  return documents
    .flatMap((document) => (document.items ?? [document]) as { kind: string; metadata: { name: string } }[])
    .filter(({ kind, metadata }) => !(kind === 'Namespace' && metadata.name === 'portolan-system'))
    .sort((a, b) => (`${a.kind}/${a.metadata.name}` < `${b.kind}/${b.metadata.name}` ? -1 : 1));
}

/** From the Go module proxy, where Go is installed. */
async function findHelm(directory: string): Promise<string | undefined> {
  const cached = process.env['HELM'];
  if (cached !== undefined) return cached;
  try {
    const env = { ...process.env, GOBIN: directory };
    execFileSync('go', ['install', 'helm.sh/helm/v3/cmd/helm@v3.16.4'], { env, stdio: 'inherit' });
    return join(directory, 'helm');
  } catch {
    return undefined;
  }
}
