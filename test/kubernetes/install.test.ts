// Installed on a real Kubernetes API server: the objects are accepted as they are, twice, and taken away again.

import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findHelm } from '../../scripts/helm.mjs';
import { secretNamespaces } from '../../src/install/objects.ts';
import { systemNamespace } from '../../src/kube/objects/ours.ts';
import { asArgs } from '../support/kubectl.ts';
import { runPortolan, run as runProgram } from '../support/portolan.ts';
import { KubernetesApiServer, kubeconfigText } from './api-server.ts';
import { startFlowHome } from './homes.ts';
import { sayingVersion } from './saying-version.ts';

const helm = findHelm();

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

  test('with every verb on the kinds, but not the rights of the parts -> refused, and nothing is changed', async () => {
    const kinds = [
      ...[
        'namespaces',
        'serviceaccounts',
        'services',
        'configmaps',
        'resourcequotas',
        'deployments.apps',
        'daemonsets.apps',
      ],
      'clusterproperties.about.k8s.io',
      ...['poddisruptionbudgets.policy', 'networkpolicies.networking.k8s.io'],
      ...['validatingadmissionpolicies', 'validatingadmissionpolicybindings'].map(
        (one) => `${one}.admissionregistration.k8s.io`,
      ),
      ...['customresourcedefinitions.apiextensions.k8s.io', 'clustersets.portolan.dev'],
      ...['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'].map(
        (one) => `${one}.rbac.authorization.k8s.io`,
      ),
    ];
    const rules = kinds.map((kind) => {
      const [resource = '', ...group] = kind.split('.');
      const verbs = ['get', 'list', 'create', 'update', 'patch', 'delete'];
      return { apiGroups: [group.join('.')], resources: [resource], verbs };
    });
    const role = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'deployer' },
      rules,
    };
    api.kubectl('apply', '-f', fileOf(directory, JSON.stringify(role)));
    api.kubectl('create', 'serviceaccount', 'deployer', '-n', 'default');
    const account = '--serviceaccount=default:deployer';
    api.kubectl('create', 'clusterrolebinding', 'deployer', '--clusterrole=deployer', account);
    const deployer = join(directory, 'deployer.kubeconfig');
    writeFileSync(deployer, kubeconfigText(api, api.kubectl('create', 'token', 'deployer', '-n', 'default').trim()));
    const { code, err } = await runPortolan(['install', '--kubeconfig', deployer]);
    expect([code, err]).toEqual([5, expect.stringContaining('rights to the parts that you do not hold yourself')]);
    expect(api.kubectl('get', 'namespaces', '-o', 'name')).not.toContain('portolan-system');
  });

  test('a ServiceMonitor without the Prometheus operator -> refused with what to do', async () => {
    const { code, err } = await portolan('install --set serviceMonitor=true');
    expect([code, err]).toEqual([5, expect.stringContaining('or leave serviceMonitor out')]);
  });

  test('a dns.clusterIP that the cluster does not have -> refused, and nothing is changed', async () => {
    const { code, err } = await portolan('install --set dns.clusterIP=10.9.9.9');
    expect([code, err]).toEqual([5, expect.stringContaining('not in the valid range')]);
    expect(api.kubectl('get', 'namespaces', '-o', 'name')).not.toContain('portolan-system');
  });

  test('all parts -> accepted; again -> nothing is changed', async () => {
    const set = [
      'peering.enabled=true',
      'peering.trustDomain=acme.example',
      'peering.advertise=mesh.acme.example:8008',
    ];
    const more = [
      ...[
        'ingress.enabled=true',
        'envoy.enabled=true',
        'dashboard.enabled=true',
        'dashboard.host=portolan.acme.example',
      ],
      'dns.stubAdvertise=192.0.2.7',
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

  test('the resolver as a DaemonSet -> its Deployment goes, everything else stays as it was given', async () => {
    const { code, out } = await portolan('upgrade --set dns.workload=DaemonSet');
    const changed = out.split('\n').filter((line) => /^(created|updated|removed) (?!ConfigMap)/.test(line));
    expect([code, changed]).toEqual([
      0,
      [
        'created DaemonSet portolan-system/portolan-dns',
        'removed Deployment portolan-system/portolan-dns',
        'removed PodDisruptionBudget portolan-system/portolan-dns',
      ],
    ]);
  });

  test('another dns.clusterIP -> refused, and nothing is changed', async () => {
    const { code, out, err } = await portolan('upgrade --set dns.clusterIP=10.0.0.54 --set logLevel=debug');
    expect([code, out, err]).toEqual([
      5,
      '',
      expect.stringContaining('may not change once set; delete the Service first'),
    ]);
    const path = 'jsonpath={.spec.template.spec.containers[0].args}';
    expect(api.kubectl('get', 'deployment', 'portolan-agent', '-n', 'portolan-system', '-o', path)).toContain('info');
  });

  test('the kustomization of the guide -> the image, the argument and the component that it names', () => {
    const guide = readFileSync('docs/guides/kubernetes.md', 'utf8');
    const folder = join(directory, 'kustomization');
    cpSync('deploy', join(folder, 'portolan/deploy'), { recursive: true });
    writeFileSync(join(folder, 'kustomization.yaml'), /```yaml\n([^`]+)```/.exec(guide)![1]!);
    const text = api.kubectl('kustomize', folder);
    expect(text).toMatch(/- dns\n(.*\n)*? +- --forward=192\.0\.2\.53\n/);
    expect(text).toContain('name: portolan-xds');
    expect(new Set(text.match(/image: .*portolan.*/g))).toEqual(new Set(['image: registry.example/portolan:0.1.0']));
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

  test('join --install -> the cluster is a member and its parts are there', async () => {
    await portolan('broker init --clusterset prod');
    const token = (await portolan('broker token east --clusterset prod')).out.trim().split(/\s+/).at(-1)!;
    const { code, out, err } = await portolan(`join ${token} --install`);
    expect([code, code === 0 ? '' : err]).toEqual([0, '']);
    expect(out).toContain('created Deployment portolan-system/portolan-agent');
    // The resolver takes the id from the home.
    expect(api.kubectl('get', 'deployment', 'portolan-dns', '-n', 'portolan-system', '-o', 'yaml')).not.toContain(
      '--cluster-id',
    );
    expect(out.trimEnd().split('\n').at(-1)).toBe('next: portolan status');
  });
});

describe.skipIf(helm.path === undefined)(`helm (${helm.why ?? 'found or built by Go'})`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-helm-'));
  let api: KubernetesApiServer;
  beforeAll(async () => {
    api = await KubernetesApiServer.start();
  });
  afterAll(async () => {
    await api?.stop();
    rmSync(directory, { recursive: true, force: true });
  });
  const run = (...args: string[]) =>
    execFileSync(helm.path!, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const template = (...set: string[]) =>
    run(
      'template',
      'portolan',
      'deploy/chart',
      '-n',
      'portolan-system',
      '--kube-version',
      '1.35.0',
      ...set.flatMap((one) => ['--set', one]),
    );
  /** As Helm that is connected to an embedded home: that says 1.35, and serves no admission. */
  const inHome = (...set: string[]) => {
    const words = ['template', 'portolan', 'deploy/chart', '-n', 'portolan-system', '--kube-version', '1.35.0'];
    return run(...words, '--api-versions', 'apps/v1/Deployment', ...set.flatMap((one) => ['--set', one]));
  };
  const withDefinitions = (text: string) =>
    [text, ...readdirSync('deploy/chart/crds').map((name) => readFileSync(`deploy/chart/crds/${name}`, 'utf8'))].join(
      '\n---\n',
    );
  const objects = (text: string) =>
    sorted(api.kubectl('create', '--dry-run=client', '--validate=false', '-o', 'json', '-f', fileOf(directory, text)));

  test('lint -> nothing to complain about', () => {
    expect(run('lint', '--strict', 'deploy/chart')).toContain('0 chart(s) failed');
  });

  test('template with the default values -> the objects of the kustomize base with admission', () => {
    const chart = run(
      'template',
      'portolan',
      'deploy/chart',
      '-n',
      'portolan-system',
      '--include-crds',
      '--kube-version',
      '1.35.0',
    );
    api.kubectl('apply', '--server-side', '-f', 'deploy/crds');
    const folder = join(directory, 'with-admission');
    cpSync('deploy', join(folder, 'deploy'), { recursive: true });
    const [resources, components] = [['deploy/kustomize/base'], ['deploy/kustomize/admission']];
    writeFileSync(join(folder, 'kustomization.yaml'), JSON.stringify({ resources, components }));
    expect(objects(chart)).toEqual(objects(api.kubectl('kustomize', folder)));
  });

  test('template with every part and choice -> the objects of portolan install', async () => {
    const set = [
      ...['peering', 'authority', 'xds', 'ingress', 'envoy', 'dashboard'].map((part) => `${part}.enabled=true`),
      ...['peering.trustDomain=acme.example', 'peering.advertise=mesh.acme.example:8008', 'authority.federation=world'],
      ...['dashboard.host=portolan.acme.example', 'agent.writeServices=true', 'dns.workload=DaemonSet'],
      ...['dns.clusterIP=10.0.0.53', 'dns.forward=192.0.2.53', 'dns.clusterId=east', 'dns.stubAdvertise=192.0.2.7'],
      'listenAddress=[::]',
    ];
    const printed = await runPortolan(['install', '--print', ...set.flatMap((one) => ['--set', one])]);
    expect([printed.code, printed.err]).toEqual([0, '']);
    expect(objects(withDefinitions(template(...set)))).toEqual(objects(printed.out));
    api.kubectl('create', 'namespace', 'portolan-system');
    const applied = api.kubectl('apply', '--server-side', '-f', fileOf(directory, template(...set)));
    for (const what of [
      'daemonset.apps/portolan-dns',
      'daemonset.apps/portolan-envoy',
      'deployment.apps/portolan-ingress',
    ])
      expect(applied).toContain(`${what} serverside-applied`);
  });

  test('install and upgrade as the guide has it -> parts and definitions; portolan leaves them to Helm; uninstall keeps definitions', async () => {
    const own = await KubernetesApiServer.start();
    const guide = readFileSync('docs/guides/kubernetes.md', 'utf8');
    const { kubeconfig, stop } = await sayingVersion(own, { minor: '35', directory });
    chmodSync(kubeconfig, 0o600);
    // Not to be waited for in this process, which passes the connection on.
    const typed = async (pattern: RegExp) => {
      const [line] = pattern.exec(guide)!;
      const { code, err } = await runProgram(helm.path!, [...line.split(' ').slice(1), '--kubeconfig', kubeconfig]);
      expect([line, code, err]).toEqual([line, 0, '']);
    };
    try {
      await typed(/^helm install .*$/m);
      expect(own.kubectl('get', 'deployments', '-n', 'portolan-system', '-o', 'name')).toContain('/portolan-dns');
      await typed(/^helm upgrade .*$/m);
      const left = await runPortolan(['uninstall', '--kubeconfig', own.kubeconfig]);
      expect([left.code, left.err]).toEqual([5, expect.stringContaining('run helm uninstall portolan')]);
      await typed(/^helm uninstall .*$/m);
      expect(own.kubectl('get', 'deployments', '-n', 'portolan-system', '-o', 'name')).toBe('');
      expect(own.kubectl('get', 'crds', '-o', 'name')).toContain('serviceshards.portolan.dev');
    } finally {
      stop();
      await own.stop();
    }
  });

  test('install after join -> accepted; another id -> refused; uninstall -> the namespace with TLS Secrets stays', async () => {
    const own = await KubernetesApiServer.start();
    const { kubeconfig, stop } = await sayingVersion(own, { minor: '35', directory });
    chmodSync(kubeconfig, 0o600);
    const typed = async (line: string) => runProgram(helm.path!, [...line.split(' '), '--kubeconfig', kubeconfig]);
    const chart = 'portolan deploy/chart -n portolan-system';
    const secret = ['-n', 'portolan-external', '-o', 'name'];
    try {
      const as = (line: string) => runPortolan([...asArgs(line), '--kubeconfig', own.kubeconfig]);
      await as('broker init --clusterset prod');
      const token = (await as('broker token east --clusterset prod')).out.trim().split(/\s+/).at(-1)!;
      expect((await as(`join ${token}`)).code).toBe(0);
      own.kubectl('create', 'secret', 'generic', 'pki', '-n', 'portolan-external', '--from-literal=ca.crt=x');
      const wrong = await typed(`install ${chart} --set dns.clusterId=west`);
      expect([wrong.code === 0, wrong.err]).toEqual([
        false,
        expect.stringContaining('dns.clusterId: west, but this cluster joined as east'),
      ]);
      const first = await typed(`install ${chart} --set dns.clusterId=east`);
      expect([first.code, first.err]).toEqual([0, '']);
      const again = await typed(`upgrade ${chart} --reuse-values`);
      expect([again.code, again.err]).toEqual([0, '']);
      expect(own.kubectl('get', 'secrets', ...secret)).toContain('secret/pki');
      expect((await typed('uninstall portolan -n portolan-system')).code).toBe(0);
      expect(own.kubectl('get', 'secrets', ...secret)).toContain('secret/pki');
      // One that Helm made itself stays too.
      own.kubectl('delete', 'namespace', 'portolan-external');
      expect((await typed(`install ${chart} --set dns.clusterId=east`)).code).toBe(0);
      expect((await typed(`upgrade ${chart} --reset-then-reuse-values`)).code).toBe(0);
      expect((await typed('uninstall portolan -n portolan-system')).code).toBe(0);
      expect(own.kubectl('get', 'namespace', 'portolan-external', '-o', 'jsonpath={.status.phase}')).toBe('Active');
    } finally {
      stop();
      await own.stop();
    }
  });

  test('template with rightsOnly, applied to an embedded home -> accounts and rights, as portolan install --rights-only prints', async () => {
    const set = ['rightsOnly=true', 'xds.enabled=true', 'dns.stubAdvertise=192.0.2.7'];
    const text = template(...set);
    const home = await startFlowHome('embedded', 'east');
    try {
      const applied = home.kubectl(['apply', '-f', fileOf(directory, inHome(...set))]);
      for (const what of ['serviceaccount/portolan-agent', 'clusterrole.rbac.authorization.k8s.io/portolan:xds'])
        expect(applied).toContain(`${what} created`);
      const words = set.slice(1).flatMap((one) => ['--set', one]);
      const printed = await runPortolan(['install', '--rights-only', '--print', ...words]);
      expect(objects(withDefinitions(text))).toEqual(objects(printed.out));
      expect(home.kubectl(['create', 'token', 'portolan-xds', '-n', 'portolan-system'])).toMatch(/\..+\./);
      // It runs no Pods, and stores the rest.
      home.kubectl(['apply', '-f', fileOf(directory, inHome())]);
      expect(home.kubectl('get daemonsets -n portolan-system -o name')).toBe('daemonset.apps/portolan-proxy');
    } finally {
      await home.stop();
    }
  });

  test('helm install on an embedded home -> accounts and rights, without admission', async () => {
    const home = await startFlowHome('embedded', 'east');
    try {
      chmodSync(home.kubeconfig, 0o600);
      const words = ['install', 'portolan', 'deploy/chart', '-n', 'portolan-system', '--set', 'rightsOnly=true'];
      const done = await runProgram(helm.path!, [...words, '--kubeconfig', home.kubeconfig]);
      expect([done.code, done.code === 0 ? '' : done.err]).toEqual([0, '']);
      expect(home.kubectl('get serviceaccounts -n portolan-system -o name')).toContain('portolan-agent');
    } finally {
      await home.stop();
    }
  });

  test('the kustomize rights, applied to an embedded home -> definitions, accounts and rights', async () => {
    const home = await startFlowHome('embedded', 'east');
    try {
      const applied = home.kubectl(['apply', '-k', 'deploy/kustomize/rights']);
      expect(applied).toContain('serviceaccount/portolan-dns created');
      expect(applied).toMatch(/^customresourcedefinition\.apiextensions\.k8s\.io\/peers\.portolan\.dev \w+$/m);
      expect(home.kubectl(['apply', '-k', 'deploy/kustomize/rights'])).not.toMatch(/created|configured/);
      expect(applied).not.toMatch(/deployment|daemonset/);
    } finally {
      await home.stop();
    }
  });

  test.each([
    ['agent.enabled=false', 'dns.enabled: dns serves imports, which the agent writes'],
    ['ingress.enabled=true', 'ingress.enabled: the ingress gets its configuration from xds'],
    ['peering.enabled=true', 'peering.trustDomain: give the trust domain'],
    ['dns.enabled=false,dns.stubAdvertise=192.0.2.7', 'dns.stubAdvertise: only resolvers take stub zones'],
    ['rightsOnly=true,serviceMonitor=true', 'serviceMonitor: with rightsOnly there are no Pods to scrape'],
    ['dns.clusterIP=x', 'clusterIP'],
    ['dns.stubAdvertise=dns.example:8553', 'stubAdvertise'],
    ['listenAddress=::', 'listenAddress'],
    ['peering.serviceType=Public', 'serviceType'],
    ['dns.replicas=0', 'replicas'],
    ['logLevel=loud', 'logLevel'],
    ['dns.replica=3', 'replica'],
    ['dns.memory=much', 'memory'],
    ['dns.workload=Pod', 'workload'],
    ['dns.stubServiceType=Pod', 'stubServiceType'],
  ])('%s -> refused: %s', (value, message) => {
    expect(() => template(value)).toThrow(message);
  });
});

function fileOf(directory: string, text: string): string {
  const path = join(directory, `${Math.random()}.yaml`);
  writeFileSync(path, text);
  return path;
}

interface Listed {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

function sorted(list: string): unknown[] {
  const documents = list.split(/^(?=\{$)/m).map((text) => JSON.parse(text) as Listed & { items?: Listed[] });
  const key = ({ kind, metadata: { namespace = '', name } }: Listed) => `${kind}/${namespace}/${name}`;
  return (
    documents
      .flatMap((document): Listed[] => document.items ?? [document])
      // Helm makes the first itself, and keeps the others.
      .filter(
        ({ kind, metadata }) => kind !== 'Namespace' || ![systemNamespace, ...secretNamespaces].includes(metadata.name),
      )
      .sort((a, b) => (key(a) < key(b) ? -1 : 1))
  );
}
