// etcd, API server, controller manager and scheduler of one cluster, in the network of its machine.

import { type ChildProcess, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../support/dns-process.ts';
import { spawnTied } from '../support/tied-process.ts';
import { type NodeMachine, within } from './network.ts';
import { type Program, pathOf } from './programs.ts';

export interface ControlPlaneOptions {
  readonly machine: NodeMachine;
  /** Of its own, for data, certificates and logs. */
  readonly folder: string;
  readonly podRange: string;
  readonly serviceRange: string;
}

export class ControlPlane {
  readonly machine: NodeMachine;
  readonly folder: string;
  readonly server: string;
  readonly kubeconfig: string;
  /** Signs the certificate with which the API server calls the kubelet. */
  readonly callerAuthority: string;
  readonly #options: ControlPlaneOptions;

  constructor(options: ControlPlaneOptions) {
    this.#options = options;
    this.machine = options.machine;
    this.folder = options.folder;
    this.server = `https://${options.machine.address}:6443`;
    this.kubeconfig = join(this.folder, 'admin.kubeconfig');
    this.callerAuthority = join(this.folder, 'caller-ca.crt');
    mkdirSync(this.folder, { recursive: true });
  }

  get nodeName(): string {
    return `${this.machine.name}-node`;
  }

  async start(): Promise<void> {
    const [key, certificate] = [join(this.folder, 'accounts.key'), join(this.folder, 'certs/apiserver.crt')];
    execFileSync('openssl', ['genrsa', '-out', key, '2048'], { stdio: 'ignore' });
    this.#makeCaller();
    this.run('etcd', ['--data-dir', join(this.folder, 'etcd'), '--unsafe-no-fsync', '--log-level', 'error']);
    const { podRange, serviceRange } = this.#options;
    this.run('kube-apiserver', [
      ...['--etcd-servers', 'http://127.0.0.1:2379', '--advertise-address', this.machine.address],
      ...['--cert-dir', join(this.folder, 'certs'), '--service-account-key-file', key],
      ...['--service-account-signing-key-file', key, '--service-account-issuer', 'https://kubernetes.default.svc'],
      ...['--token-auth-file', this.write('tokens.csv', this.#tokens())],
      ...['--authorization-mode', 'Node,RBAC', '--service-cluster-ip-range', serviceRange, '--allow-privileged'],
      ...['--kubelet-client-certificate', join(this.folder, 'caller.crt')],
      ...['--kubelet-client-key', join(this.folder, 'caller.key')],
      ...['--kubelet-preferred-address-types', 'InternalIP'],
    ]);
    await until(`${this.machine.name}: certificate of the API server`, () => existsSync(certificate));
    writeFileSync(this.kubeconfig, this.kubeconfigOf('admin'));
    await until(`${this.machine.name}: API server`, () => this.#isReady());
    this.run('kube-controller-manager', [
      ...['--kubeconfig', this.kubeconfig, '--leader-elect=false', '--service-account-private-key-file', key],
      ...['--root-ca-file', certificate, '--allocate-node-cidrs', '--cluster-cidr', podRange],
    ]);
    this.run('kube-scheduler', ['--kubeconfig', this.kubeconfig, '--leader-elect=false']);
  }

  /** With the token of that user. */
  kubeconfigOf(user: 'admin' | 'node' | 'proxy'): string {
    const authority = readFileSync(join(this.folder, 'certs/apiserver.crt')).toString('base64');
    const { name } = this.machine;
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name, cluster: { server: this.server, 'certificate-authority-data': authority } }],
      users: [{ name, user: { token: `${user}-token` } }],
      contexts: [{ name, context: { cluster: name, user: name } }],
      'current-context': name,
    });
  }

  kubectl(args: readonly string[], input = ''): string {
    const words = ['--kubeconfig', this.kubeconfig, ...args];
    return execFileSync(pathOf('kubectl'), words, { encoding: 'utf8', input, stdio: ['pipe', 'pipe', 'pipe'] }).trim();
  }

  apply(...items: object[]): void {
    this.kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  }

  /** Starts a program of this cluster in the network of its machine; it logs to a file of its name. */
  run(program: Program, args: readonly string[]): ChildProcess {
    const log = openSync(join(this.folder, `${program}.log`), 'a');
    const [first, ...rest] = [...within(this.machine), pathOf(program), ...args];
    return spawnTied(first!, rest, { stdio: ['ignore', log, log], cwd: this.folder });
  }

  write(name: string, text: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, text);
    return path;
  }

  #isReady(): boolean {
    try {
      return this.kubectl(['get', '--raw', '/readyz']) === 'ok';
    } catch {
      return false;
    }
  }

  #tokens(): string {
    const users = [
      'admin-token,admin,admin,system:masters',
      `node-token,system:node:${this.nodeName},node,system:nodes`,
      'proxy-token,system:kube-proxy,proxy,',
    ];
    return `${users.join('\n')}\n`;
  }

  #makeCaller(): void {
    const at = (name: string) => join(this.folder, name);
    const make = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' });
    const fresh = ['-newkey', 'rsa:2048', '-nodes'];
    make(
      'req',
      '-x509',
      ...fresh,
      '-keyout',
      at('caller-ca.key'),
      '-out',
      this.callerAuthority,
      '-subj',
      '/CN=caller-ca',
    );
    make('req', ...fresh, '-keyout', at('caller.key'), '-out', at('caller.csr'), '-subj', '/CN=caller');
    const signer = ['-CA', this.callerAuthority, '-CAkey', at('caller-ca.key'), '-CAcreateserial'];
    make('x509', '-req', '-in', at('caller.csr'), ...signer, '-out', at('caller.crt'), '-days', '2');
  }
}
