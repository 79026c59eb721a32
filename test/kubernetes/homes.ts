// A home of either kind, as flows need it: a real Kubernetes API server, or the embedded one as a process. Commands and parts
// cannot tell them apart.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { parse } from 'yaml';
import { startApi } from '../support/api-process.ts';
import { asArgs } from '../support/kubectl.ts';
import { runPortolan } from '../support/portolan.ts';
import { type Access, KubernetesApiServer, kubeconfigText, kubectlWith } from './api-server.ts';
import { type AuditLine, readAuditLog } from './audit.ts';
import { startLine } from './line.ts';

export type HomeKind = 'real' | 'embedded';
export const system = 'portolan-system';

export interface FlowHome extends Access {
  readonly kind: HomeKind;
  readonly name: string;
  /** The admin's. */
  readonly kubeconfig: string;
  kubectl(line: string | readonly string[], input?: string): string;
  /** A command as its admin types it; fails the test if it does not succeed. */
  type(line: string): Promise<string>;
  apply(...objects: object[]): void;
  /** Path of a kubeconfig with the token of that account. */
  account(name: string, namespace?: string): string;
  /** Requests of accounts that were refused for want of a right, in words. */
  refusals(): string[];
  audit(): AuditLine[];
  /** Breaks every connection to it, as a network does; new ones are taken. */
  cut(): void;
  stop(): Promise<void>;
}

export async function startFlowHome(kind: HomeKind, name: string): Promise<FlowHome> {
  const directory = mkdtempSync(join(tmpdir(), `portolan-flow-${name}-`));
  const started = kind === 'real' ? await startReal() : await startEmbedded(directory);
  // Commands and parts come by a line that can be cut; kubectl, which is waited for, does not.
  const line = await startLine(started.access.server);
  const access = { ...started.access, server: line.server };
  const kubeconfig = join(directory, 'admin.kubeconfig');
  writeFileSync(kubeconfig, readFileSync(started.kubeconfig, 'utf8').replaceAll(started.access.server, line.server));
  const audit = () => readAuditLog(started.auditLog);
  const kubectl = (line: string | readonly string[], input = '') =>
    kubectlWith(started.kubeconfig, asArgs(line), input).trim();
  return {
    ...{ kind, name, kubeconfig, kubectl, audit, ...access },
    refusals: () => [...new Set(audit().filter(isRefusedAccount).map(describeLine))],
    type: async (line) => {
      const { code, out, err } = await runPortolan([...asArgs(line), '--kubeconfig', kubeconfig], {
        timeoutMs: 180_000,
      });
      const errors = err.replace(/^(note|warning):.*\n/gm, '');
      expect([line, code, code === 0 ? errors : out + errors]).toEqual([line, 0, '']);
      return out;
    },
    apply: (...objects) =>
      void kubectl('apply -f -', JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects })),
    account: (account, namespace = system) => {
      const token = kubectl(['create', 'token', account, '-n', namespace, '--duration=1h']);
      const path = join(directory, `${account}.kubeconfig`);
      writeFileSync(path, kubeconfigText(access, token));
      return path;
    },
    cut: () => line.cut(),
    stop: async () => {
      line.stop();
      await started.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

interface Started {
  readonly kubeconfig: string;
  readonly auditLog: string;
  readonly access: Access;
  stop(): Promise<unknown>;
}

async function startReal(): Promise<Started> {
  const api = await KubernetesApiServer.start();
  const { kubeconfig, auditLog, server, authority } = api;
  return { kubeconfig, auditLog, access: { server, authority }, stop: () => api.stop() };
}

async function startEmbedded(directory: string): Promise<Started> {
  const auditLog = join(directory, 'audit.log');
  const api = await startApi({ data: join(directory, 'home'), args: ['--audit', auditLog] });
  const { cluster } = parse(readFileSync(api.kubeconfig, 'utf8')).clusters[0];
  const authority = Buffer.from(cluster['certificate-authority-data'], 'base64').toString();
  const access = { server: cluster.server, authority };
  return { kubeconfig: api.kubeconfig, auditLog, access, stop: () => api.stop() };
}

/** By RBAC. Quotas that are not counted yet and namespaces that are ending refuse with the same code. */
const isRefusedAccount = ({ user, requestURI, responseStatus, annotations }: AuditLine) =>
  responseStatus?.code === 403 &&
  (annotations?.['authorization.k8s.io/decision'] ?? 'forbid') === 'forbid' &&
  user.username.startsWith('system:serviceaccount:') &&
  // Only an embedded broker has the first path. A member that leaves looks until its namespace is gone, and with it the right.
  !/^\/\.well-known\/portolan-ca$|^\/api\/v1\/namespaces\/prod-m-\w+$/.test(requestURI);

function describeLine({ user, verb, requestURI }: AuditLine): string {
  return `${user.username.split(':').slice(2).join('/')} ${verb} ${requestURI}`;
}
