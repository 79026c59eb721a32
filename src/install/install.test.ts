// Checks that the files of deploy/ match the description, and that no part has more rights than it needs.

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { deployFiles } from '../../test/support/deploy-files.ts';
import { parseListen } from '../cli/roles/options.ts';
import type { KubernetesObject } from '../kube/objects/object.ts';
import { imageOf } from './image.ts';
import { objectsByPart, objectsOf } from './objects.ts';
import { partsOf } from './parts.ts';
import { heapVariable } from './pod.ts';
import { commentOf } from './value-comments.ts';
import { defaultValues, partNames, type Values, valueProblems } from './values.ts';

const deploy = fileURLToPath(new URL('../../deploy/', import.meta.url));

interface Container {
  readonly image: string;
  readonly args: readonly string[];
  readonly env?: readonly { readonly name: string }[];
  readonly securityContext: { readonly readOnlyRootFilesystem: boolean; readonly capabilities: object };
  readonly readinessProbe?: object;
  readonly livenessProbe?: object;
  readonly resources: object;
  readonly volumeMounts?: readonly { readonly name: string; readonly readOnly?: boolean }[];
}

interface Workload extends KubernetesObject {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly hostNetwork?: boolean;
        readonly securityContext: { readonly runAsNonRoot?: boolean; readonly sysctls?: readonly object[] };
        readonly topologySpreadConstraints?: readonly object[];
        readonly tolerations?: readonly object[];
        readonly containers: readonly Container[];
        readonly initContainers?: readonly Container[];
      };
    };
  };
}

const everything = Object.fromEntries(
  partNames.map((name) => [name, { ...defaultValues[name], enabled: true }]),
) as unknown as Values;
const parts = [...objectsByPart({ ...defaultValues, ...everything })];
const podOf = (objects: readonly { object: KubernetesObject }[]) =>
  objects.map(({ object }) => object as Workload).find(({ kind }) => kind === 'Deployment' || kind === 'DaemonSet')!
    .spec.template.spec;
/** The container that clients reach: in a gateway a sidecar. */
const servingIn = ({ containers, initContainers = [] }: ReturnType<typeof podOf>) =>
  [...initContainers, ...containers].find((one) => 'readinessProbe' in one)!;

describe('install: deploy/', () => {
  test.each([...deployFiles()])('%s -> as generated; run node scripts/generate-manifests.ts', (path, text) => {
    expect(existsSync(join(deploy, path))).toBe(true);
    expect(readFileSync(join(deploy, path), 'utf8')).toBe(text);
  });

  test.each(['chart', 'kustomize', 'systemd'])('%s -> has no file that nobody generates', (folder) => {
    const files = (
      readdirSync(join(deploy, folder), { recursive: true, withFileTypes: true }) as import('node:fs').Dirent[]
    )
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(deploy.length));
    expect(files.filter((file) => !deployFiles().has(file))).toEqual([]);
  });
});

describe('install: least privilege', () => {
  test.each(parts)('%s -> read-only, no capability it does not need, probes, requests, not root', (name, objects) => {
    const { hostNetwork = false, securityContext, containers, initContainers = [] } = podOf(objects);
    const isProxy = name === 'proxy';
    for (const container of [...containers, ...initContainers]) {
      expect(container.securityContext.readOnlyRootFilesystem).toBe(true);
      const add = isProxy ? { add: ['NET_ADMIN'] } : {};
      expect(container.securityContext.capabilities).toEqual({ drop: ['ALL'], ...add });
      expect(container.resources).toMatchObject({ requests: {}, limits: {} });
    }
    expect([hostNetwork, securityContext.runAsNonRoot === true]).toEqual([isProxy || name === 'envoy', !isProxy]);
    expect(securityContext.sysctls !== undefined).toBe(name === 'dns' || name === 'authority');
    expect(servingIn(podOf(objects))).toMatchObject({ readinessProbe: {} });
    // An Envoy goes on without its discovery server.
    expect(servingIn(podOf(objects)).livenessProbe !== undefined).toBe(!['envoy', 'ingress', 'gateway'].includes(name));
  });

  test('the heap -> three quarters of the limit in every container of ours', () => {
    const containers = parts.flatMap(([, objects]) => podOf(objects).containers);
    for (const { image, env } of containers.filter(({ image }) => image === imageOf(defaultValues.image)))
      expect([image, env]).toEqual([image, expect.arrayContaining([heapVariable])]);
  });

  test('the heap, as Node takes it -> three quarters of the memory that the process may have', () => {
    const { name, value } = heapVariable;
    const script = 'console.log(v8.getHeapStatistics().heap_size_limit, process.constrainedMemory(), os.totalmem())';
    const out = execFileSync(process.execPath, ['-e', script], { encoding: 'utf8', env: { [name]: value } });
    const [heap = 0, constrained = 0, total = 0] = out.split(' ').map(Number);
    const share = heap / Math.min(total, constrained || total);
    expect(share).toBeGreaterThan(0.7);
    expect(share).toBeLessThan(0.8);
  });

  test('probes -> a part that starts is looked at every second, and one that is ready is in service soon', () => {
    for (const [name, objects] of parts) {
      const container = servingIn(podOf(objects));
      const isEnvoy = ['envoy', 'ingress', 'gateway'].includes(name);
      expect([name, container]).toMatchObject([name, { readinessProbe: { periodSeconds: 2, failureThreshold: 5 } }]);
      if (!isEnvoy) expect([name, container]).toMatchObject([name, { startupProbe: { periodSeconds: 1 } }]);
    }
  });

  test('resolvers -> keep a copy of names for their next start, and go on answering while they are taken out', () => {
    const argsOf = (part: 'dns' | 'authority') => podOf(new Map(parts).get(part)!).containers[0]!.args.join(' ');
    expect(argsOf('dns')).toContain('--state /var/lib/portolan --lameduck 5');
    expect(argsOf('authority')).toContain('--state /var/lib/portolan');
  });

  test('resolvers -> ranges of clients as the values name them, each by a flag of its own; none by default', () => {
    const argsOf = (clients: readonly string[]) => {
      const values = { ...defaultValues, dns: { ...defaultValues.dns, clusterId: 'east', clients } };
      return partsOf(values).find(({ name }) => name === 'dns')!.args;
    };
    expect(argsOf([])).not.toContain('--client');
    const text = JSON.stringify(argsOf(['240.0.0.0/4', '2001:db8::/32']));
    expect(text).toContain('"--client","240.0.0.0/4","--client","2001:db8::/32"');
  });

  test('resolvers -> the same threshold for memory that goes back as bin/portolan gives them', () => {
    const [, threshold] = /= dns \].*\n.*MALLOC_MMAP_THRESHOLD_:-(\d+)/.exec(readFileSync('bin/portolan', 'utf8'))!;
    for (const [name, objects] of parts) {
      const { env } = podOf(objects).containers[0]!;
      const found = env?.filter((one) => one.name === 'MALLOC_MMAP_THRESHOLD_');
      const isResolver = name === 'dns' || name === 'authority';
      expect([name, found ?? []]).toEqual([
        name,
        isResolver ? [{ name: 'MALLOC_MMAP_THRESHOLD_', value: threshold }] : [],
      ]);
    }
  });

  test('Deployments -> spread over nodes and zones, one Pod at a time may go; DaemonSets -> on every node', () => {
    for (const [name, objects] of parts) {
      const kinds = objects.map(({ type }) => type.kind);
      const isDeployment = kinds.includes('Deployment');
      expect([name, kinds.includes('PodDisruptionBudget')]).toEqual([name, isDeployment]);
      const { topologySpreadConstraints, tolerations } = podOf(objects);
      expect([name, topologySpreadConstraints?.length ?? 0, tolerations?.length ?? 0]).toEqual(
        isDeployment ? [name, 2, 0] : [name, 0, 1],
      );
    }
  });

  test('network policies -> every part can be reached by its own ports and by no other', () => {
    const open = parts.map(([name, objects]) => {
      const { object } = objects.find(({ type }) => type.kind === 'NetworkPolicy')!;
      const { spec } = object as unknown as {
        spec: { policyTypes: string[]; egress: object[]; ingress: { ports: { port: number }[] }[] };
      };
      expect([spec.policyTypes, spec.egress]).toEqual([['Ingress', 'Egress'], [{}]]);
      return `${name} ${spec.ingress.flatMap(({ ports }) => ports.map(({ port }) => port)).join()}`;
    });
    expect(open).toEqual([
      'agent 9465',
      'dns 9465,53,53,8553',
      'proxy 9465',
      'peering 9465,8008',
      'authority 9465,53,53',
      'xds 9465,15010',
      'ingress 15443',
      'envoy 15003',
      'dashboard 8420',
      'gateway 15443',
    ]);
  });

  test('rights -> no wildcards, nobody escalates, an account for each part', () => {
    const text = JSON.stringify(parts);
    for (const word of ['"*"', '"escalate"', '"bind"', '"impersonate"', 'cluster-admin'])
      expect(text).not.toContain(word);
    for (const [name, objects] of parts) {
      const accounts = objects
        .filter(({ type }) => type.kind === 'ServiceAccount')
        .map(({ object }) => object.metadata.name);
      expect(accounts).toEqual([name === 'dashboard' ? 'portolan-dashboard-server' : `portolan-${name}`]);
    }
  });

  test('writing Services -> only the agent, and only by choice', () => {
    const writers = (values: Values) =>
      [...objectsByPart(values)].flatMap(([name, objects]) =>
        objects
          .flatMap(({ object }) => (object as { rules?: { resources: string[]; verbs: string[] }[] }).rules ?? [])
          .filter(({ resources, verbs }) => resources.includes('services') && verbs.includes('update'))
          .map(() => name),
      );
    expect(writers(defaultValues)).toEqual([]);
    expect(writers({ ...defaultValues, agent: { ...defaultValues.agent, writeServices: true } })).toEqual(['agent']);
  });

  test('the dashboard -> served over TLS with the certificate of its Secret, by an account without any right', () => {
    const objects = new Map(parts).get('dashboard')!;
    const pod = podOf(objects) as ReturnType<typeof podOf> & { volumes: object[]; serviceAccountName: string };
    const [container] = pod.containers as (Container & { volumeMounts: object[] })[];
    expect(container!.args.join(' ')).toContain(
      '--tls-certificate /etc/portolan/tls.crt --tls-key /etc/portolan/tls.key',
    );
    expect(pod.volumes).toContainEqual({ name: 'secret', secret: { secretName: 'portolan-dashboard-tls' } });
    expect(container!.volumeMounts).toContainEqual({ name: 'secret', mountPath: '/etc/portolan', readOnly: true });
    expect(container).toMatchObject({ livenessProbe: { tcpSocket: { port: 'https' } } });
    expect(pod.serviceAccountName).toBe('portolan-dashboard-server');
    expect(objects.filter(({ type }) => /Role/.test(type.kind))).toEqual([]);
  });

  test.each([
    ['ingress', 'ingress'],
    ['gateway', 'gateway'],
    ['envoy', 'sidecar'],
  ] as const)(
    '%s -> its first certificate is made before it starts and renewed beside it, by the user that is not redirected',
    (name, role) => {
      const pod = podOf(new Map(parts).get(name)!);
      expect(pod.securityContext).toMatchObject({ runAsUser: 1337 });
      const [first, ...others] = [...(pod.initContainers ?? []), ...pod.containers];
      expect(first!.args.slice(0, 4)).toEqual(['xds', 'bootstrap', '--role', role]);
      expect(others.map(({ image, args }) => [image, args[0]])).toEqual([
        [defaultValues.envoyImage, '-c'],
        [imageOf(defaultValues.image), 'xds'],
      ]);
    },
  );

  test.each(['ingress', 'gateway', 'envoy'] as const)(
    '%s -> its account has no right, and only the container that starts it sees a token, which xds alone takes',
    (name) => {
      const objects = new Map(parts).get(name)!;
      expect(objects.filter(({ type }) => /Role/.test(type.kind))).toEqual([]);
      const pod = podOf(objects) as ReturnType<typeof podOf> & {
        readonly automountServiceAccountToken?: boolean;
        readonly volumes: readonly { readonly name: string; readonly projected?: { readonly sources: object[] } }[];
      };
      expect(pod.automountServiceAccountToken).toBe(false);
      const tokens = pod.volumes.filter(({ projected }) => projected !== undefined);
      expect(tokens).toMatchObject([
        { name: 'xds-token', projected: { sources: [{ serviceAccountToken: { audience: 'portolan-xds' } }] } },
      ]);
      const seeing = [...(pod.initContainers ?? []), ...pod.containers].filter(({ volumeMounts = [] }) =>
        volumeMounts.some((mount) => tokens.some((volume) => volume.name === mount.name)),
      );
      expect(seeing.map((one) => one.args[1])).toEqual(['bootstrap']);
      const state = servingIn(pod).volumeMounts!.find((mount) => mount.name === 'state');
      expect(state).toMatchObject({ readOnly: true });
      expect(pod.volumes.some((volume) => 'secret' in volume)).toBe(false);
    },
  );

  test('a gateway that is told to end -> ours, which drains it, ends first; its Envoy is a sidecar and has the time', () => {
    const gateway = { ...defaultValues.gateway, drainSeconds: 45 };
    const pod = podOf(objectsByPart({ ...defaultValues, gateway }).get('gateway')!) as ReturnType<typeof podOf> & {
      readonly terminationGracePeriodSeconds: number;
    };
    expect(pod.containers.map(({ args }) => args.join(' '))).toEqual([
      'xds renew --drain 45 --directory /var/lib/portolan/proxy',
    ]);
    expect(pod.initContainers?.map((one) => (one as { restartPolicy?: string }).restartPolicy)).toEqual([
      undefined,
      'Always',
    ]);
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(300);
  });

  test('keys of authorities -> no part but xds may read that of xds', () => {
    const readers = parts.filter(([, objects]) =>
      objects
        .flatMap(
          ({ object }) => (object as { rules?: { resources: string[]; resourceNames?: string[] }[] }).rules ?? [],
        )
        .some(
          ({ resources, resourceNames }) =>
            resources.includes('secrets') && resourceNames?.includes('portolan-xds-authority'),
        ),
    );
    expect(readers.map(([name]) => name).filter((name) => name !== 'xds')).toEqual([]);
  });

  test('dns as a DaemonSet -> on every node, without a budget', () => {
    const dns = { ...defaultValues.dns, workload: 'DaemonSet' as const };
    const kinds = objectsByPart({ ...defaultValues, dns })
      .get('dns')!
      .map(({ type }) => type.kind);
    expect([kinds.includes('DaemonSet'), kinds.includes('Deployment'), kinds.includes('PodDisruptionBudget')]).toEqual([
      true,
      false,
      false,
    ]);
  });

  test('the Envoy of nodes -> the proxy redirects to it and may read what it redirects', () => {
    const args = (values: Values) => JSON.stringify(podOf(objectsByPart(values).get('proxy')!).containers[0]!.args);
    expect(args(defaultValues)).not.toContain('--envoy');
    expect(args({ ...defaultValues, envoy: { ...defaultValues.envoy, enabled: true } })).toContain(
      '"--envoy","--envoy-uid","1337"',
    );
  });
});

describe('install: what clusters ask for', () => {
  test('Pods without IPv4 -> every part listens on [::], and on the address of its node in brackets', () => {
    const listens = (values: Values) =>
      [...objectsByPart({ ...values, ...everything })]
        .flatMap(([, objects]) => podOf(objects).containers.flatMap(({ args }) => args))
        .filter((word) => /^(\[|\d+\.|0).*:\d+$/.test(word));
    const hosts = (values: Values) => new Set(listens(values).map((word) => word.replace(/:\d+$/, '')));
    expect(hosts(defaultValues)).toEqual(new Set(['0.0.0.0', '[$(HOST_IP)]']));
    expect(hosts({ ...defaultValues, listenAddress: '[::]' })).toEqual(new Set(['[::]', '[$(HOST_IP)]']));
    expect(['[10.0.0.7]:9465', '[fd00::7]:9465'].map((text) => parseListen(text).host)).toEqual([
      '10.0.0.7',
      'fd00::7',
    ]);
  });

  test('their namespace -> may have Pods in the network of nodes, and Pods of both critical classes', () => {
    const objects = objectsOf(defaultValues).map(({ object }) => object);
    expect(objects[0]).toMatchObject({
      metadata: { name: 'portolan-system', labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } },
    });
    const quota = objects.find(({ kind }) => kind === 'ResourceQuota') as KubernetesObject & {
      spec: { scopeSelector: { matchExpressions: { values: string[] }[] } };
    };
    const classes = parts.map(([, own]) => (podOf(own) as { priorityClassName?: string }).priorityClassName);
    expect(new Set(quota.spec.scopeSelector.matchExpressions[0]!.values)).toEqual(new Set(classes));
    expect(objectsOf({ ...defaultValues, rightsOnly: true }).some(({ type }) => type.kind === 'ResourceQuota')).toBe(
      false,
    );
  });

  test('people in their own namespaces -> editors export and shift, viewers read; nobody writes imports or policies of access [003-43]', () => {
    const roles = objectsOf(defaultValues)
      .map(({ object }) => object as KubernetesObject & { rules?: { resources: string[]; verbs: string[] }[] })
      .filter(({ metadata }) => JSON.stringify(metadata.labels).includes('aggregate-to-'));
    const granted = (to: string) =>
      roles
        .filter(({ metadata }) => metadata.labels?.[`rbac.authorization.k8s.io/aggregate-to-${to}`] === 'true')
        .flatMap(({ rules = [] }) => rules.flatMap(({ resources, verbs }) => [`${verbs.join()} ${resources.join()}`]))
        .sort();
    const read = [
      'get,list,watch serviceaccesspolicies',
      'get,list,watch serviceexports,serviceimports',
      'get,list,watch trafficshifts',
    ];
    const write = ['create,update,patch,delete serviceexports', 'create,update,patch,delete trafficshifts'];
    const both = [...write, ...read];
    expect([granted('view'), granted('edit'), granted('admin')]).toEqual([read, both, both]);
    expect(objectsOf({ ...defaultValues, rightsOnly: true }).map(({ object }) => object.metadata.name)).toContain(
      'portolan:export-services',
    );
    // An admin may grant it; nobody has it by a role that clusters bind by themselves.
    const limiting = objectsOf(defaultValues).find(({ object }) => object.metadata.name === 'portolan:limit-callers');
    expect(JSON.stringify(limiting?.object)).toContain('serviceaccesspolicies');
    expect(JSON.stringify(limiting?.object.metadata.labels)).not.toContain('aggregate');
  });

  test('peers and resolvers are elsewhere -> their Services have an address for them', () => {
    const typeOf = (part: 'peering' | 'authority' | 'xds') =>
      new Map(parts)
        .get(part)!
        .map(({ object }) => object as KubernetesObject & { spec: { type?: string } })
        .find(({ kind }) => kind === 'Service')!.spec.type;
    expect([typeOf('peering'), typeOf('authority'), typeOf('xds')]).toEqual([
      'LoadBalancer',
      'LoadBalancer',
      undefined,
    ]);
  });
});

describe('install: admission', () => {
  const policies = (values: Values) =>
    objectsOf(values)
      .map(({ type }) => type.kind)
      .filter((kind) => kind.startsWith('ValidatingAdmissionPolicy'));

  test('external services outside the system namespace -> a policy that refuses them, in every installation [004-02]', () => {
    for (const values of [defaultValues, { ...defaultValues, rightsOnly: true }])
      expect(policies(values)).toEqual(['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding']);
    const chart = readFileSync(join(deploy, 'chart/templates/common.yaml'), 'utf8');
    expect(chart).toContain('.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"');
    expect(chart).toContain('(semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version)');
  });
});

describe('install: serviceMonitor', () => {
  const kinds = (values: Values) => objectsOf(values).filter(({ type }) => type.kind === 'ServiceMonitor');

  test('off by default, on -> one for each part with an admin endpoint, and a Service that it selects', () => {
    expect(kinds(defaultValues)).toEqual([]);
    const values = { ...defaultValues, serviceMonitor: true };
    const found = kinds(values).map(
      ({ object }) => object as KubernetesObject & { spec: { selector: { matchLabels: object } } },
    );
    expect(found.map(({ metadata }) => metadata.name)).toEqual(
      ['agent', 'dns', 'proxy'].map((part) => `portolan-${part}-metrics`),
    );
    for (const { metadata, spec } of found) {
      const service = objectsOf(values).find(
        ({ type, object }) => type.kind === 'Service' && object.metadata.name === metadata.name,
      );
      expect(service?.object.metadata.labels).toMatchObject(spec.selector.matchLabels);
      expect(service?.object).toMatchObject({ spec: { clusterIP: 'None', ports: [{ name: 'admin', port: 9465 }] } });
    }
  });
});

describe('install: values', () => {
  test.each(partNames)(
    '%s: placement, pull settings, arguments, environment, limits and sources -> in its objects',
    (name) => {
      const nodeSelector = { 'kubernetes.io/os': 'linux' };
      const affinity = { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } };
      const tolerations = [{ key: 'dedicated', operator: 'Exists' }];
      const from = [{ ipBlock: { cidr: '10.0.0.0/8' } }];
      const egress = [{ to: [{ ipBlock: { cidr: '192.0.2.0/24' } }] }];
      const given = {
        ...{ nodeSelector, affinity, tolerations, from, egress, cpu: '1', cpuLimit: '2' },
        ...{
          podAnnotations: { 'example.com/a': 'b' },
          extraArgs: ['--one-more'],
          extraEnv: [{ name: 'A', value: 'b' }],
        },
      };
      const values = {
        ...{ ...defaultValues, ...everything, imagePullPolicy: 'Always', imagePullSecrets: [{ name: 'registry' }] },
        [name]: { ...everything[name], ...given },
      } as unknown as Values;
      expect(valueProblems(values).filter((problem) => problem.startsWith(`${name}.cpu`))).toEqual([]);
      const objects = new Map(objectsByPart(values)).get(name)!;
      const workload = objects
        .map(({ object }) => object as Workload)
        .find(({ spec }) => spec?.template !== undefined)!;
      const pod = workload.spec.template;
      expect(pod).toMatchObject({
        metadata: { annotations: { 'example.com/a': 'b' } },
        spec: { nodeSelector, affinity, tolerations, imagePullSecrets: [{ name: 'registry' }] },
      });
      const own = servingIn(pod.spec);
      expect(own).toMatchObject({
        imagePullPolicy: 'Always',
        env: expect.arrayContaining([{ name: 'A', value: 'b' }]),
      });
      expect(own!.args.at(-1)).toBe('--one-more');
      expect(own!.resources).toMatchObject({ requests: { cpu: '1' }, limits: { cpu: '2' } });
      const policy = objects.find(({ type }) => type.kind === 'NetworkPolicy')!.object as unknown as {
        spec: { egress: object[]; ingress: { from?: object[] }[] };
      };
      expect(policy.spec.egress).toEqual(egress);
      if (name !== 'agent' && name !== 'proxy') expect(JSON.stringify(policy.spec.ingress)).toContain('10.0.0.0/8');
    },
  );

  test('every value -> explained in values.yaml', () => {
    const paths = Object.entries(defaultValues).flatMap(([key, value]) =>
      typeof value !== 'object' || Array.isArray(value) ? [key] : Object.keys(value).map((field) => `${key}.${field}`),
    );
    expect(paths.length).toBeGreaterThan(100);
    expect(paths.filter((path) => !commentOf(path))).toEqual([]);
  });

  test('the defaults -> nothing is wrong; parts that are off are not installed', () => {
    expect(valueProblems(defaultValues)).toEqual([]);
    const installed = objectsOf(defaultValues).filter(({ type }) => type.kind !== 'Namespace');
    const names = installed.map(({ object }) => object.metadata.name);
    expect(names).toContain('portolan-dns');
    expect(names).not.toContain('portolan-peering');
  });

  test.each<[string, Partial<Values>, string]>([
    [
      'dns without the agent',
      { agent: { ...defaultValues.agent, enabled: false } },
      'dns.enabled: dns serves imports, which the agent writes; enable agent, or disable dns; proxy.enabled: ',
    ],
    [
      'an ingress without xds',
      { ingress: { ...defaultValues.ingress, enabled: true } },
      'ingress.enabled: the ingress gets its configuration from xds; enable xds, or disable ingress',
    ],
    [
      'Envoys without proxies',
      {
        proxy: { ...defaultValues.proxy, enabled: false },
        xds: { ...defaultValues.xds, enabled: true },
        envoy: { ...defaultValues.envoy, enabled: true },
      },
      'envoy.enabled: the proxy sends connections to the Envoy of its node; enable proxy, or disable envoy',
    ],
    [
      'a workload that is none',
      { dns: { ...defaultValues.dns, workload: 'Pod' as never } },
      'dns.workload: Pod is none of',
    ],
    [
      'the right to write Services without an agent',
      { agent: { ...defaultValues.agent, enabled: false, writeServices: true } },
      'agent.writeServices: only the agent writes Services',
    ],
    [
      'stub zones without resolvers',
      { dns: { ...defaultValues.dns, enabled: false, stubAdvertise: '192.0.2.7' } },
      'dns.stubAdvertise: only resolvers take stub zones',
    ],
    [
      'monitors of rights',
      { rightsOnly: true, serviceMonitor: true },
      'serviceMonitor: with rightsOnly there are no Pods to scrape',
    ],
    ['an address that is none', { listenAddress: '::' }, 'listenAddress: :: is none of 0.0.0.0, [::]'],
    [
      'a Service type that is none',
      { peering: { ...defaultValues.peering, enabled: true, serviceType: 'Public' } },
      'peering.serviceType: Public is none of',
    ],
    ['a log level that is none', { logLevel: 'loud' }, 'logLevel: loud is none of debug'],
    ['no replicas', { dns: { ...defaultValues.dns, replicas: 0 } }, 'dns.replicas: 0 is not a number above 0'],
    [
      'a cluster IP that is none',
      { dns: { ...defaultValues.dns, clusterIP: 'x' } },
      'dns.clusterIP: x is no IP address',
    ],
    [
      'stub zones at a name',
      { dns: { ...defaultValues.dns, stubAdvertise: 'dns.example:8553' } },
      'dns.stubAdvertise: dns.example:8553 is no IP address',
    ],
    ['peering without a trust domain', { peering: { ...defaultValues.peering, enabled: true } }, 'peering.trustDomain'],
    [
      'an authority of no federation',
      { authority: { ...defaultValues.authority, enabled: true } },
      'authority.federation',
    ],
    ['a cluster id that is none', { dns: { ...defaultValues.dns, clusterId: 'East' } }, 'dns.clusterId: East: '],
    [
      'a client that is none',
      { dns: { ...defaultValues.dns, clients: ['all'] } },
      'dns.clients: "all" is no address or range',
    ],
    ['a digest that is cut off', { envoyImage: 'envoy@sha256:abc' }, 'envoyImage: envoy@sha256:abc has no digest'],
    ['a digest of another kind', { image: 'portolan@md5:abc' }, 'image: portolan@md5:abc has no digest'],
    ['a pull policy that is none', { imagePullPolicy: 'Often' }, 'imagePullPolicy: Often is none of Always'],
    ['a CPU limit that is none', { agent: { ...defaultValues.agent, cpuLimit: 'x' } }, 'agent.cpuLimit: x'],
    ['a memory that is none', { proxy: { ...defaultValues.proxy, memory: 'much' } }, 'proxy.memory: much'],
  ])('%s -> said with its path', (_what, change, message) => {
    expect(valueProblems({ ...defaultValues, ...change }).join('; ')).toContain(message);
  });
});

describe('install: stub zones', () => {
  const objectsWith = (stubAdvertise: string) =>
    objectsOf({ ...defaultValues, dns: { ...defaultValues.dns, stubAdvertise } }).map(({ object }) => object);
  const argsIn = (objects: readonly KubernetesObject[]) =>
    (objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'portolan-dns') as Workload).spec
      .template.spec.containers[0]!.args;
  const ownNames = (objects: readonly KubernetesObject[]) =>
    objects.filter(({ metadata }) => metadata.name === 'portolan-dns-stub').map(({ kind }) => kind);

  test('an address for authorities -> the endpoint, its Service and the rights for it; shared by all resolvers', () => {
    const objects = objectsWith('192.0.2.7');
    expect(argsIn(objects).join(' ')).toContain('--stub-advertise 192.0.2.7 --stub-listen 0.0.0.0:8553 --stub-shared');
    expect(ownNames(objects)).toEqual(['Role', 'RoleBinding', 'Service']);
    expect(
      objects.find(({ kind, metadata }) => kind === 'Service' && metadata.name === 'portolan-dns-stub'),
    ).toMatchObject({
      spec: { type: 'LoadBalancer', ports: [{ port: 8553, targetPort: 8553 }] },
    });
  });

  test('none -> no endpoint, no Service and no right to the key of its certificates', () => {
    const objects = objectsWith('');
    expect(argsIn(objects).join(' ')).not.toContain('--stub');
    expect(ownNames(objects)).toEqual([]);
    expect(JSON.stringify(objects)).not.toContain('portolan-resolver-authority');
  });
});

test.each(['serviceimports', 'serviceexports'])(
  'the definition of %s -> labels of the mcs-api release, by which installers compare versions',
  (name) => {
    const { metadata } = parse(readFileSync(`deploy/crds/${name}.yaml`, 'utf8')) as { metadata: { labels: object } };
    expect(metadata.labels).toEqual({
      'app.kubernetes.io/managed-by': 'portolan',
      'multicluster.x-k8s.io/release-version': 'v0.5.0',
      'multicluster.x-k8s.io/crd-schema-revision': '0',
    });
  },
);
