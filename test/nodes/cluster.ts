// A real Kubernetes cluster of one node on one machine: control plane, containerd, kubelet, kube-proxy. The settings are those that a
// machine without systemd, with control groups of version 1 and without CAP_SYS_RESOURCE needs; others take them too.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../support/dns-process.ts';
import { makeGroup } from './cgroups.ts';
import { ControlPlane, type ControlPlaneOptions } from './control-plane.ts';
import { type NodeImage, sandboxImage } from './images.ts';
import { pathOf, pluginFolder } from './programs.ts';

export interface NodeClusterOptions extends ControlPlaneOptions {
  readonly nameServer: string;
  /** The parent of every control group of its Pods. */
  readonly group: string;
}

export class NodeCluster extends ControlPlane {
  readonly #options: NodeClusterOptions;

  constructor(options: NodeClusterOptions) {
    super(options);
    this.#options = options;
  }

  /** Where its Pods ask for names. */
  get nameServer(): string {
    return this.#options.nameServer;
  }

  /** Starts the node of a cluster whose control plane runs, with those images. */
  async startNode(images: readonly NodeImage[]): Promise<void> {
    const socket = await this.#startContainerd();
    for (const { name, file } of images) this.#import(socket, name, file);
    this.#startKubelet(socket);
    const range = () => this.kubectl(['get', 'nodes', '-o', 'jsonpath={.items[*].spec.podCIDR}']);
    await until(`${this.machine.name}: a range for the Pods of its node`, () => range() !== '');
    this.#writePodNetwork(range());
    this.run('kube-proxy', ['--config', this.write('kube-proxy.json', this.#proxyConfig())]);
    await until(`${this.machine.name}: its node is ready`, () => this.#nodeStatus() === 'True');
  }

  #nodeStatus(): string {
    return this.kubectl(['get', 'nodes', '-o', `jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}`]);
  }

  async #startContainerd(): Promise<string> {
    const at = (name: string) => join(this.folder, name);
    const socket = at('containerd.sock');
    for (const name of ['containerd', 'containerd-state', 'runc', 'cni']) mkdirSync(at(name), { recursive: true });
    const config = `version = 2
root = "${at('containerd')}"
state = "${at('containerd-state')}"
[grpc]
  address = "${socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${sandboxImage}"
  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "${pluginFolder}"
  conf_dir = "${at('cni')}"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false
  Root = "${at('runc')}"
`;
    this.run('containerd', ['--config', this.write('containerd.toml', config)]);
    await until(`${this.machine.name}: containerd`, () => existsSync(socket));
    return socket;
  }

  #import(socket: string, name: string, file: string): void {
    const args = ['--address', socket, '-n', 'k8s.io', 'images', 'import', '--base-name', name, file];
    execFileSync(pathOf('ctr'), args, { stdio: ['ignore', 'ignore', 'inherit'] });
  }

  #startKubelet(socket: string): void {
    makeGroup(this.#options.group);
    const kubeconfig = this.write('node.kubeconfig', this.kubeconfigOf('node'));
    this.run('kubelet', [
      ...['--config', this.write('kubelet.json', this.#kubeletConfig(socket)), '--kubeconfig', kubeconfig],
      ...['--root-dir', join(this.folder, 'kubelet'), '--cert-dir', join(this.folder, 'kubelet-certs')],
      ...['--hostname-override', this.nodeName, '--node-ip', this.machine.address],
    ]);
  }

  #kubeletConfig(socket: string): string {
    const resolvConf = this.write('resolv.conf', 'nameserver 127.0.0.1\n');
    return JSON.stringify({
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      authentication: {
        anonymous: { enabled: false },
        webhook: { enabled: false },
        x509: { clientCAFile: this.callerAuthority },
      },
      authorization: { mode: 'AlwaysAllow' },
      containerRuntimeEndpoint: `unix://${socket}`,
      ...{ failCgroupV1: false, cgroupDriver: 'cgroupfs', cgroupRoot: `/${this.#options.group}`, oomScoreAdj: 0 },
      ...{ clusterDNS: [this.#options.nameServer], clusterDomain: 'cluster.local', resolvConf },
      ...{ podLogsDir: join(this.folder, 'pod-logs'), imageGCHighThresholdPercent: 100 },
      evictionHard: { 'memory.available': '50Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
    });
  }

  /** A bridge for Pods; their addresses are seen by other machines as they are. */
  #writePodNetwork(subnet: string): void {
    const ipam = {
      type: 'host-local',
      dataDir: join(this.folder, 'addresses'),
      ranges: [[{ subnet }]],
      routes: [{ dst: '0.0.0.0/0' }],
    };
    const bridge = { type: 'bridge', bridge: 'pods', isGateway: true, hairpinMode: true, ipam };
    const plugins = [bridge, { type: 'portmap', capabilities: { portMappings: true } }];
    this.write('cni/pods.conflist', JSON.stringify({ cniVersion: '0.4.0', name: 'pods', plugins }));
  }

  #proxyConfig(): string {
    return JSON.stringify({
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
      clientConnection: { kubeconfig: this.write('proxy.kubeconfig', this.kubeconfigOf('proxy')) },
      ...{ mode: 'nftables', oomScoreAdj: 0, hostnameOverride: this.nodeName },
      conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    });
  }
}
