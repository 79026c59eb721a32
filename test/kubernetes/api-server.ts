// A real Kubernetes API server with its etcd, from the binaries in KUBEBUILDER_ASSETS, on free ports of this machine.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const assets = process.env['KUBEBUILDER_ASSETS'] ?? '';

function missingAssets(): string[] {
  return ['kube-apiserver', 'etcd', 'kubectl'].filter((name) => !existsSync(join(assets, name)));
}

export class KubernetesApiServer {
  readonly #directory = mkdtempSync(join(tmpdir(), 'portolan-kubernetes-'));
  readonly #children: ChildProcess[] = [];
  readonly kubeconfig = join(this.#directory, 'admin.kubeconfig');
  readonly auditLog = join(this.#directory, 'audit.log');
  server = '';
  /** In PEM. */
  authority = '';

  static async start(): Promise<KubernetesApiServer> {
    const missing = missingAssets();
    if (missing.length > 0) throw new Error(`KUBEBUILDER_ASSETS ${assets}: ${missing.join(', ')} not there`);
    const started = new KubernetesApiServer();
    try {
      await started.#start();
    } catch (error) {
      await started.stop();
      throw error;
    }
    return started;
  }

  kubectl(...args: string[]): string {
    return execFileSync(join(assets, 'kubectl'), ['--kubeconfig', this.kubeconfig, ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  async stop(): Promise<void> {
    for (const child of this.#children.reverse()) {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      if (child.exitCode === null && child.signalCode === null && child.kill('SIGKILL')) await gone;
    }
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #start(): Promise<void> {
    const [client, peer, secure] = [await freePort(), await freePort(), await freePort()];
    const etcd = `http://127.0.0.1:${client}`;
    this.#run('etcd', [
      ...['--data-dir', join(this.#directory, 'etcd'), '--listen-client-urls', etcd, '--advertise-client-urls', etcd],
      ...['--listen-peer-urls', `http://127.0.0.1:${peer}`, '--log-level', 'error', '--unsafe-no-fsync'],
    ]);
    const key = join(this.#directory, 'accounts.key');
    execFileSync('openssl', ['genrsa', '-out', key, '2048'], { stdio: 'ignore' });
    const tokens = join(this.#directory, 'tokens.csv');
    writeFileSync(tokens, 'admin-token,admin,admin,system:masters\n');
    const policy = join(this.#directory, 'audit.yaml');
    writeFileSync(
      policy,
      'apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n',
    );
    this.#run('kube-apiserver', [
      ...['--etcd-servers', etcd, '--secure-port', String(secure), '--bind-address', '127.0.0.1'],
      ...['--cert-dir', join(this.#directory, 'certs'), '--service-account-key-file', key],
      ...['--service-account-signing-key-file', key, '--service-account-issuer', 'https://kubernetes.default.svc'],
      ...['--token-auth-file', tokens, '--authorization-mode', 'RBAC', '--service-cluster-ip-range', '10.0.0.0/24'],
      ...[
        '--audit-policy-file',
        policy,
        '--audit-log-path',
        this.auditLog,
        '--disable-admission-plugins',
        'ServiceAccount',
      ],
    ]);
    this.server = `https://127.0.0.1:${secure}`;
    const certificate = join(this.#directory, 'certs/apiserver.crt');
    for (let tries = 0; tries < 240 && !existsSync(certificate); tries++) await pause(250);
    this.authority = readFileSync(certificate, 'utf8');
    writeFileSync(this.kubeconfig, kubeconfigText(this, 'admin-token'));
    for (let tries = 0; ; tries++) {
      try {
        if (this.kubectl('get', '--raw', '/readyz') === 'ok') return;
      } catch (error) {
        if (tries > 120) throw error;
      }
      await pause(500);
    }
  }

  #run(program: string, args: readonly string[]): void {
    this.#children.push(spawn(join(assets, program), [...args], { stdio: 'ignore' }));
  }
}

export function kubeconfigText({ server, authority }: KubernetesApiServer, token: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'k', cluster: { server, 'certificate-authority-data': Buffer.from(authority).toString('base64') } },
    ],
    users: [{ name: 'k', user: { token } }],
    contexts: [{ name: 'k', context: { cluster: 'k', user: 'k' } }],
    'current-context': 'k',
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
