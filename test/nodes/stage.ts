// Broker, east and west, started together, and one kubeconfig with a context for each.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NodeCluster } from './cluster.ts';
import { ControlPlane } from './control-plane.ts';
import type { NodeImage } from './images.ts';
import { addMachine, openNetwork, routeTo } from './network.ts';

export interface StageOptions {
  readonly folder: string;
  readonly images: readonly NodeImage[];
  /** The beginning of the names of its control groups. */
  readonly group: string;
  readonly isShort: boolean;
  /** Further flags of `portolan broker init`; empty takes the quick start as it is. */
  readonly initFlags: string;
  /** Further values of the chart, `PATH=VALUE`. */
  readonly sets: readonly string[];
  say(line: string): void;
}

export const nodeNames = ['east', 'west'] as const;

/** The control group of a cluster's node. */
export const groupOf = (group: string, name: string): string => `${group}-${name}`;

export class NodeStage {
  readonly folder: string;
  readonly isShort: boolean;
  readonly initFlags: string;
  readonly sets: readonly string[];
  readonly say: (line: string) => void;
  readonly kubeconfig: string;
  readonly broker: ControlPlane;
  readonly east: NodeCluster;
  readonly west: NodeCluster;
  readonly #images: readonly NodeImage[];

  /** In network, mount and process namespaces of one's own. */
  constructor({ folder, images, group, isShort, initFlags, sets, say }: StageOptions) {
    this.folder = folder;
    this.isShort = isShort;
    this.initFlags = initFlags;
    this.sets = sets;
    this.say = say;
    this.#images = images;
    this.kubeconfig = join(folder, 'kubeconfig');
    openNetwork();
    const ranges = (host: number) => ({ podRange: `10.${host}.0.0/16`, serviceRange: `10.10${host}.0.0/16` });
    const common = (name: string, host: number) => ({
      machine: addMachine(name, host + 1),
      folder: join(folder, name),
      ...ranges(host),
    });
    const cluster = (name: string, host: number) =>
      new NodeCluster({
        ...common(name, host),
        nameServer: `10.10${host}.0.10`,
        group: groupOf(group, name),
      });
    this.east = cluster('east', 1);
    this.west = cluster('west', 2);
    this.broker = new ControlPlane(common('broker', 3));
    const machines = [this.east, this.west, this.broker].map(({ machine }) => machine);
    for (const [index, { machine }] of this.nodes.entries())
      routeTo(
        ranges(index + 1).podRange,
        machine,
        machines.filter((one) => one !== machine),
      );
  }

  get nodes(): readonly NodeCluster[] {
    return [this.east, this.west];
  }

  async start(): Promise<void> {
    await Promise.all([this.broker, ...this.nodes].map((one) => one.start()));
    this.#writeKubeconfig();
    await Promise.all(this.nodes.map((one) => one.startNode(this.#images)));
  }

  #writeKubeconfig(): void {
    const configs = [this.broker, this.east, this.west].map((one) => JSON.parse(one.kubeconfigOf('admin')));
    const all = (list: 'clusters' | 'users' | 'contexts') => configs.flatMap((config) => config[list]);
    const merged = { clusters: all('clusters'), users: all('users'), contexts: all('contexts') };
    writeFileSync(this.kubeconfig, JSON.stringify({ apiVersion: 'v1', kind: 'Config', ...merged }));
  }
}
