import { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { startHome } from '../../../sim/home.ts';
import { Simulation } from '../../../sim/virtual-world.ts';
import type { Host } from '../../base/host.ts';
import { type EndpointSlice, endpointSliceType } from '../../kube/objects/endpoint-slice.ts';
import { type Service, serviceType } from '../../kube/objects/service.ts';
import { addRegisterCommands } from './register.ts';

describe('register', () => {
  test('register: no such Service -> made without a selector, the process is behind it and ready', async () => {
    const { run, service, slices } = await start();
    expect(await run('register default/web --address 10.0.0.7 --port http=80:8080')).toEqual([
      'made Service default/web',
      '10.0.0.7 (http=8080): registered behind default/web',
    ]);
    const made = await service('web');
    expect(made?.spec?.selector).toBeUndefined();
    expect(made?.spec?.ports).toMatchObject([{ name: 'http', port: 80, targetPort: 8080, protocol: 'TCP' }]);
    expect(await slices()).toMatchObject([
      {
        metadata: {
          labels: {
            'kubernetes.io/service-name': 'web',
            'endpointslice.kubernetes.io/managed-by': 'registration.portolan.dev',
          },
          ownerReferences: [{ kind: 'Service', name: 'web', uid: made?.metadata.uid }],
        },
        addressType: 'IPv4',
        endpoints: [{ addresses: ['10.0.0.7'], conditions: { ready: true } }],
        ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
      },
    ]);
  });

  test('register: the same again -> nothing is written', async () => {
    const { run, home } = await start();
    await run('register default/web --address 10.0.0.7 --port 8080 --check tcp');
    const revision = home.revision;
    expect(await run('register default/web --address 10.0.0.7 --port 8080 --check tcp')).toEqual([
      '10.0.0.7 (8080): already registered behind default/web',
    ]);
    expect(home.revision).toBe(revision);
  });

  test('register: with a check -> not ready yet, the check is noted; another check later -> changed in place', async () => {
    const { run, slices } = await start();
    await run(
      'register default/web --address 10.0.0.7 --port 8080 --check http://web.test:8081/healthz?full=1 --interval 2s --check-timeout 500ms --rise 2 --fall 4',
    );
    const [slice] = await slices();
    expect(slice?.endpoints[0]?.conditions?.ready).toBe(false);
    expect(JSON.parse(slice!.metadata.annotations!['portolan.dev/check']!)).toEqual({
      probe: { kind: 'http', isSecure: false, host: 'web.test:8081', port: 8081, path: '/healthz?full=1' },
      intervalMs: 2000,
      timeoutMs: 500,
      rise: 2,
      fall: 4,
    });
    expect(await run('register default/web --address 10.0.0.7 --port 8080 --check tcp')).toContain(
      '10.0.0.7 (8080): changed behind default/web',
    );
    expect(await slices()).toHaveLength(1);
  });

  test('register: a check is taken off -> ready at once', async () => {
    const { run, slices } = await start();
    await run('register default/web --address 10.0.0.7 --port 8080 --check tcp');
    await run('register default/web --address 10.0.0.7 --port 8080');
    expect((await slices())[0]).toMatchObject({ endpoints: [{ conditions: { ready: true } }] });
    expect((await slices())[0]?.metadata.annotations?.['portolan.dev/check']).toBeUndefined();
  });

  test('register: several processes, families and ports -> a slice each', async () => {
    const { run, slices } = await start();
    await run('register default/web --address 10.0.0.7 --port http=8080 --port metrics=9090');
    await run('register default/web --address 10.0.0.8 --port http=8080 --port metrics=9090');
    await run('register default/web --address 10.0.0.8 --port http=8081 --port metrics=9091');
    await run('register default/web --address fd00::7 --port http=8080 --zone north');
    const shown = (await slices()).map(({ addressType, endpoints, ports }) =>
      [
        addressType,
        endpoints[0]?.addresses?.[0],
        endpoints[0]?.zone ?? '-',
        ...(ports ?? []).map((each) => `${each.name}=${each.port}`),
      ].join(' '),
    );
    expect(shown.sort()).toEqual([
      'IPv4 10.0.0.7 - http=8080 metrics=9090',
      'IPv4 10.0.0.8 - http=8080 metrics=9090',
      'IPv4 10.0.0.8 - http=8081 metrics=9091',
      'IPv6 fd00::7 north http=8080',
    ]);
  });

  test('register: the Service has one named port -> taken without saying its name', async () => {
    const { run, make, slices } = await start();
    await make({ ports: [{ name: 'grpc', port: 443 }] });
    await run('register web --address 10.0.0.7 --port 9000');
    expect((await slices())[0]?.ports).toMatchObject([{ name: 'grpc', port: 9000 }]);
  });

  const refusals: [string, Service['spec'] | undefined, string, string][] = [
    [
      'a Service with a selector',
      { selector: { app: 'web' }, ports: [{ port: 80 }] },
      '--address 10.0.0.7 --port 80',
      'register default/web: that Service has a selector, so its endpoints are the Pods it selects; register under another name',
    ],
    [
      'an ExternalName',
      { type: 'ExternalName', externalName: 'x.test' },
      '--address 10.0.0.7 --port 80',
      'that Service is an ExternalName',
    ],
    [
      'a port the Service does not have',
      {
        ports: [
          { name: 'http', port: 80 },
          { name: 'admin', port: 81 },
        ],
      },
      '--address 10.0.0.7 --port grpc=80',
      'it has no port named "grpc" for TCP; its ports: http 80/TCP, admin 81/TCP',
    ],
    [
      'a port of another protocol',
      { ports: [{ name: 'dns', port: 53 }] },
      '--address 10.0.0.7 --port 53/udp',
      'it has no port named "" for UDP',
    ],
    ['a host name as address', undefined, '--address web.test --port 80', '--address "web.test": not an IP address'],
    [
      'a port that is none',
      undefined,
      '--address 10.0.0.7 --port http',
      '--port "http": write a number, such as 8080, http=8080',
    ],
    ['a port out of range', undefined, '--address 10.0.0.7 --port 70000', '--port "70000": a port is from 1 to 65535'],
    [
      'several ports without names',
      undefined,
      '--address 10.0.0.7 --port 80 --port 81',
      'with several ports each needs a name',
    ],
    ['two ports of one name', undefined, '--address 10.0.0.7 --port a=80 --port a=81', 'two ports are named "a"'],
    [
      'a check of an unknown kind',
      undefined,
      '--address 10.0.0.7 --port 80 --check ping',
      'check "ping": write tcp, tcp:PORT, http://HOST[:PORT]/PATH',
    ],
    [
      'an interval without a unit',
      undefined,
      '--address 10.0.0.7 --port 80 --check tcp --interval 5',
      '--interval "5": write a time from 200ms to 60m, such as 5s',
    ],
    [
      'an interval without a check',
      undefined,
      '--address 10.0.0.7 --port 80 --interval 5s',
      '--interval: needs --check',
    ],
    [
      'a count that is none',
      undefined,
      '--address 10.0.0.7 --port 80 --check tcp --fall 0',
      '--fall "0": write a number from 1 to 99',
    ],
    ['a multicast address', undefined, '--address 224.0.0.1 --port 80', 'multicast range'],
  ];
  test.each(refusals)('register: %s -> refused, with what to do', async (_what, spec, flags, message) => {
    const { run, make, slices } = await start();
    if (spec !== undefined) await make(spec);
    await expect(run(`register default/web ${flags}`)).rejects.toThrow(message);
    expect(await slices()).toEqual([]);
  });

  test('register: no such namespace -> says how to make it', async () => {
    const { run } = await start();
    await expect(run('register nowhere/web --address 10.0.0.7 --port 80')).rejects.toThrow(
      'make it with kubectl create namespace nowhere',
    );
  });

  test.each(['a/b/c', '/web', 'shop/'])('register: %j as Service -> says how to write one', async (ref) => {
    const { run } = await start();
    await expect(run(`register ${ref} --address 10.0.0.7 --port 80`)).rejects.toThrow(
      'write NAMESPACE/NAME, such as shop/checkout',
    );
  });

  test('register: the Service is removed between its two steps -> made anew, nothing is lost', async () => {
    const { run, sim, home, slices, service } = await start();
    const remover = home.clientOf(sim.world('remover'));
    let removals = 0;
    sim.network.listen(home.url, async (request) => {
      const response = await home.api.handle(request);
      if (request.method === 'POST' && request.path.includes('endpointslices') && removals++ === 0) {
        await home.api.handle({ method: 'DELETE', path: '/api/v1/namespaces/default/services/web', headers: {} });
        await home.api.whenIdle();
      }
      return response;
    });
    await run('register default/web --address 10.0.0.7 --port 80');
    expect([removals, (await slices()).length]).toEqual([2, 1]);
    expect((await slices())[0]?.metadata.ownerReferences?.[0]?.uid).toBe((await service('web'))?.metadata.uid);
    remover.close();
  });
});

describe('deregister', () => {
  test('deregister: one of two processes -> the other and the Service stay', async () => {
    const { run, slices, service } = await start();
    await run('register default/web --address 10.0.0.7 --port 80');
    await run('register default/web --address 10.0.0.8 --port 80');
    expect(await run('deregister default/web --address 10.0.0.7')).toEqual(['10.0.0.7: deregistered from default/web']);
    expect((await slices()).map(({ endpoints }) => endpoints[0]?.addresses?.[0])).toEqual(['10.0.0.8']);
    expect(await service('web')).toBeDefined();
  });

  test('deregister: the last process behind a Service that register made -> the Service goes too', async () => {
    const { run, slices, service } = await start();
    await run('register default/web --address 10.0.0.7 --port 80');
    expect(await run('deregister default/web --address 10.0.0.7')).toEqual([
      '10.0.0.7: deregistered from default/web',
      'removed Service default/web',
    ]);
    expect([await slices(), await service('web')]).toEqual([[], undefined]);
  });

  test('deregister: the last process behind a Service of somebody else -> the Service stays', async () => {
    const { run, make, service } = await start();
    await make({ ports: [{ port: 80 }] });
    await run('register default/web --address 10.0.0.7 --port 80');
    await run('deregister default/web --address 10.0.0.7');
    expect(await service('web')).toBeDefined();
  });

  test('deregister: a slice of somebody else stands behind it -> neither it nor the Service is touched', async () => {
    const { run, slices, service, makeSlice } = await start();
    await run('register default/web --address 10.0.0.7 --port 80');
    await makeSlice('10.0.0.7');
    await run('deregister default/web --address 10.0.0.7');
    expect((await slices()).map(({ metadata }) => metadata.name)).toEqual(['foreign']);
    expect(await service('web')).toBeDefined();
  });

  test('deregister: two processes at one address -> --port tells which', async () => {
    const { run, slices } = await start();
    await run('register default/web --address 10.0.0.7 --port http=8080');
    await run('register default/web --address 10.0.0.7 --port http=8081');
    await run('deregister default/web --address 10.0.0.7 --port 8080');
    expect((await slices()).map(({ ports }) => ports?.[0]?.port)).toEqual([8081]);
  });

  test('deregister: again -> nothing to do, and no error', async () => {
    const { run } = await start();
    expect(await run('deregister default/web --address 10.0.0.7')).toEqual([
      '10.0.0.7: not registered behind default/web',
    ]);
  });
});

async function start() {
  const sim = new Simulation({ seed: 4 });
  const home = await startHome(sim);
  const client = home.clientOf(sim.world('test'));
  const kubeconfig = JSON.stringify({
    'current-context': 'x',
    clusters: [{ name: 'x', cluster: { server: home.url } }],
    contexts: [{ name: 'x', context: { cluster: 'x' } }],
  });
  const host: Host = {
    environment: { KUBECONFIG: '/config' },
    readText: async (path) => (path === '/config' ? kubeconfig : undefined),
    run: async () => ({ kind: 'timed out' }),
  };
  const run = async (line: string) => {
    const lines: string[] = [];
    const program = new Command().exitOverride();
    addRegisterCommands(program, { world: sim.world('cli'), host, print: (text) => lines.push(text) });
    await sim.time.settle(program.parseAsync(line.split(' '), { from: 'user' }));
    return lines;
  };
  const create = (type: typeof serviceType, object: Service | EndpointSlice) =>
    sim.time.settle(client.create(type, object));
  return {
    sim,
    home,
    run,
    make: (spec: Service['spec']) =>
      create(serviceType, { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace: 'default' }, spec }),
    makeSlice: (address: string) =>
      create(endpointSliceType, {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'foreign', namespace: 'default', labels: { 'kubernetes.io/service-name': 'web' } },
        addressType: 'IPv4',
        endpoints: [{ addresses: [address] }],
        ports: [],
      }),
    slices: async () =>
      (await sim.time.settle(client.list<EndpointSlice>(endpointSliceType, { namespace: 'default' }))).items,
    service: (name: string) =>
      sim.time.settle(client.get<Service>(serviceType, { namespace: 'default', name }).catch(() => undefined)),
  };
}
