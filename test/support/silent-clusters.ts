// One node with `portolan proxy` and two Pods in network namespaces, one of which may not reach anything, and two clusters with two
// endpoints of each service. Endpoints stop answering in three ways while the home calls them ready, each way in a service of its own,
// so that all of it can go on at the same time. Needs root.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { connectFarAway } from './distance.ts';
import { until } from './dns-process.ts';
import { claimsOf, importOf, sliceOf } from './imports.ts';
import { Namespaces, type Place } from './namespaces.ts';
import {
  type ClientReport,
  type LineProcess,
  type NodeHome,
  type ProxyProcess,
  startClients,
  startNodeHome,
  startProxyProcess,
  startServers,
} from './proxy-processes.ts';
import { endStarted } from './started.ts';

const clusters = { east: '10.71.0', west: '10.72.0' } as const;
type ClusterId = keyof typeof clusters;
const hosts = [1, 2] as const;
export type Way = 'reset' | 'drop' | 'black hole';
/** One service for each way to fail, and one that always answers. */
const services = ['calm', 'reset', 'drop', 'black hole'] as const;
type Service = (typeof services)[number];

interface Outcome {
  readonly leftMs: number;
  readonly backMs: number;
  readonly report: ClientReport;
}

export class SilentWorld {
  readonly #directory = mkdtempSync(join(tmpdir(), 'portolan-silent-'));
  readonly net = new Namespaces('si');
  readonly node: Place;
  readonly pod: Place;
  readonly barred: Place;
  readonly #places: Record<ClusterId, Place>;
  /** Of the endpoints that are stopped. */
  readonly #servers = new Map<number, LineProcess>();
  readonly #running: LineProcess[] = [];
  #home: NodeHome | undefined;
  proxy!: ProxyProcess;

  constructor() {
    const { net } = this;
    this.node = net.addMachine('node', 11);
    this.#places = { east: net.addMachine('east', 12), west: net.addMachine('west', 13) };
    this.pod = net.addPod(this.node, 'pod', '10.66.0');
    this.barred = net.addPod(this.node, 'barred', '10.67.0');
    net.run(this.node, 'sysctl -qw net.ipv4.ip_forward=1');
    net.run(this.node, 'nft add table ip barring');
    net.run(this.node, "nft add chain ip barring f '{ type filter hook forward priority 0; }'");
    net.run(this.node, 'nft add rule ip barring f ip saddr 10.67.0.0/24 drop');
    for (const [id, subnet] of Object.entries(clusters) as [ClusterId, string][]) {
      const place = this.#places[id];
      for (const service of services)
        for (const host of hosts) net.ip(place, `addr add ${endpoint(service, id, host)}/32 dev lo`);
      net.ip(this.node, `route add ${subnet}.0/24 via ${place.address}`);
      for (const pods of ['10.66.0', '10.67.0']) net.ip(place, `route add ${pods}.0/24 via ${this.node.address}`);
    }
  }

  async start(...flags: string[]): Promise<void> {
    const home = await startNodeHome(this.net, this.node, { directory: this.#directory });
    this.#home = home;
    const put = (object: object) => home.order({ put: object as never });
    await put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    const ports = [{ name: 'http', port: 80 }];
    for (const service of services) {
      const [name, spec] = [nameOf(service), { ips: [addressOf(service)], ports }];
      for (const claim of claimsOf(name, spec)) await put(claim);
      await put(importOf(name, spec));
      for (const cluster of Object.keys(clusters) as ClusterId[]) {
        const addresses = hosts.map((host) => endpoint(service, cluster, host));
        await put(sliceOf({ service: name, cluster, addresses, ports: [{ name: 'http', port: 8080 }] }));
      }
    }
    await this.#serveAll();
    const args = ['--kubeconfig', home.proxyKubeconfig, '--node', 'node-1', '--cluster-id', 'near', ...flags];
    this.proxy = await startProxyProcess(this.net, this.node, args);
    await this.proxy.whenReady();
  }

  async stop(): Promise<void> {
    await this.proxy?.stop('SIGKILL');
    for (const each of [...this.#running, ...this.#servers.values()]) await each.stop();
    await this.#home?.stop();
    await endStarted();
    this.net.remove();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #load(service: Service, place: Place, more: object = {}): LineProcess {
    const task = { kind: 'tcp', host: addressOf(service), port: 80, lanes: 8, timeoutMs: 20_000, pauseMs: 20, ...more };
    const started = startClients(this.net, place, task);
    this.#running.push(started);
    return started;
  }

  async #silent(service: Service): Promise<Record<string, string>> {
    const { silent } = JSON.parse((await this.proxy.get('/status')).text);
    return silent?.services[`shop/${nameOf(service)}`] ?? {};
  }

  /** From now on a way to the cluster and back takes so long. */
  async setDistance(id: ClusterId, roundTripMs: number): Promise<void> {
    const place = this.#places[id];
    const third = Object.keys(clusters).indexOf(id) + 1;
    const [near, far] = await connectFarAway({
      ...{ ends: [this.node.name, place.name], net: `10.89.${third}`, roundTripMs, device: `far${third}` },
    });
    this.net.ip(this.node, `route replace ${clusters[id]}.0/24 via ${far}`);
    for (const pods of ['10.66.0', '10.67.0']) this.net.ip(place, `route replace ${pods}.0/24 via ${near}`);
  }

  /** Until the node knows the distance and has left nothing, after how many ms. */
  async whenUsed(id: ClusterId, roundTripMs: number): Promise<number> {
    const startedMs = performance.now();
    await until(`${id} is known to be ${roundTripMs} ms away, and used`, async () => {
      const { silent } = JSON.parse((await this.proxy.get('/status')).text);
      return silent?.paths[id]?.rttMs >= roundTripMs && Object.keys(silent.services).length === 0;
    });
    return Math.round(performance.now() - startedMs);
  }

  /** Breaks endpoints of east under load, waits until they are left, mends them and waits until they are used again. */
  async fail(way: Way, failing: readonly number[]): Promise<Outcome> {
    const load = this.#load(way, this.pod);
    await pause(1_500);
    const startedMs = performance.now();
    for (const host of failing) await this.#break(way, host);
    await until(
      `${failing.length} of 2 are left`,
      async () => (await this.#silent(way))['east']?.startsWith(`${failing.length} of 2`) === true,
    );
    const leftMs = performance.now() - startedMs;
    await this.#mark(load);
    await pause(2_000);
    // The kernel has no way there any more.
    const { answers } = await this.#mark(load);
    const stillAsked = failing.filter((host) => `east-${host}` in answers);
    if (stillAsked.length > 0) throw new Error(`east-${stillAsked} still gets connections`);
    for (const host of failing) await this.#mend(way, host);
    const mendedMs = performance.now();
    await until('all are used again', async () => {
      if (Object.keys(await this.#silent(way)).length > 0) return false;
      const report = await this.#mark(load);
      return failing.every((host) => `east-${host}` in report.answers);
    });
    const backMs = performance.now() - mendedMs;
    load.child.stdin!.write('stop\n');
    const report = JSON.parse(await load.next()) as ClientReport;
    return { leftMs: Math.round(leftMs), backMs: Math.round(backMs), report };
  }

  /** Clients that close early, a Pod whose egress is forbidden, and distance: how often something was left though all answer. */
  async calm(
    seconds: number,
  ): Promise<{ readonly left: readonly string[]; readonly reports: readonly ClientReport[] }> {
    const loads = [
      this.#load('calm', this.pod, { lanes: 4 }),
      this.#load('calm', this.pod, { lanes: 4, closeMs: 0 }),
      this.#load('calm', this.barred, { lanes: 2, timeoutMs: 1_500 }),
    ];
    const left = new Set<string>();
    const endMs = performance.now() + seconds * 1000;
    while (performance.now() < endMs) {
      for (const [cluster, text] of Object.entries(await this.#silent('calm'))) left.add(`${cluster}: ${text}`);
      await pause(300);
    }
    const reports: ClientReport[] = [];
    for (const load of loads) {
      load.child.stdin!.write('stop\n');
      reports.push(JSON.parse(await load.next()) as ClientReport);
    }
    return { left: [...left], reports };
  }

  async #mark(load: LineProcess): Promise<ClientReport> {
    load.child.stdin!.write('mark\n');
    return JSON.parse(await load.next()) as ClientReport;
  }

  /** One process for all that answer to the end, and one for each endpoint that is stopped. */
  async #serveAll(): Promise<void> {
    const ids = Object.keys(clusters) as ClusterId[];
    const kept = (id: ClusterId) => services.filter((service) => id !== 'east' || service !== 'reset');
    await Promise.all([
      ...ids.map(async (id) => {
        const listeners = kept(id).flatMap((service) => hosts.map((host) => listener(service, id, host)));
        this.#running.push(await startServers(this.net, this.#places[id], listeners));
      }),
      ...hosts.map((host) => this.#serveReset(host)),
    ]);
  }

  async #serveReset(host: number): Promise<void> {
    this.#servers.set(host, await startServers(this.net, this.#places.east, [listener('reset', 'east', host)]));
  }

  async #break(way: Way, host: number): Promise<void> {
    const address = endpoint(way, 'east', host);
    if (way === 'reset') return await this.#servers.get(host)!.stop();
    if (way === 'black hole') return void this.net.ip(this.node, `route add blackhole ${address}/32`);
    this.net.run(
      this.#places.east,
      `nft 'add table ip dead; add chain ip dead c { type filter hook prerouting priority -300; }; add rule ip dead c ip daddr ${address} drop'`,
    );
  }

  async #mend(way: Way, host: number): Promise<void> {
    if (way === 'reset') return await this.#serveReset(host);
    if (way === 'black hole')
      return void this.net.ip(this.node, `route del blackhole ${endpoint(way, 'east', host)}/32`);
    this.net.run(this.#places.east, 'sh -c "nft delete table ip dead || true"');
  }
}

const nameOf = (service: Service) => service.replace(' ', '-');
const addressOf = (service: Service) => `243.0.0.${services.indexOf(service) + 1}`;

function endpoint(service: Service, id: ClusterId, host: number): string {
  return `${clusters[id]}.${services.indexOf(service) * 10 + host}`;
}

function listener(service: Service, id: ClusterId, host: number): object {
  return { kind: 'tcp', port: 8080, address: endpoint(service, id, host), says: `${id}-${host}` };
}
