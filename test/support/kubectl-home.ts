// A home of its own for one file of kubectl tests, and the kubectl to use on it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ApiProcess, startApi } from './api-process.ts';
import { pathOf } from './counterparts.ts';
import { Kubectl } from './kubectl.ts';

export class KubectlHome {
  readonly directory = mkdtempSync(join(tmpdir(), 'portolan-kubectl-'));
  #api: ApiProcess | undefined;
  readonly #kubectls: Kubectl[] = [];

  async start(): Promise<Kubectl> {
    this.#api = await startApi({ data: join(this.directory, 'home') });
    return this.kubectl(pathOf('kubectl')!);
  }

  get api(): ApiProcess {
    return this.#api!;
  }

  /** Another kubectl, or the same one as another user. */
  kubectl(path: string, kubeconfig = this.api.kubeconfig): Kubectl {
    const directory = join(this.directory, `kubectl-${this.#kubectls.length}`);
    const kubectl = new Kubectl({ path, kubeconfig, directory });
    this.#kubectls.push(kubectl);
    return kubectl;
  }

  async stop(): Promise<void> {
    for (const kubectl of this.#kubectls) kubectl.stopAll();
    await this.#api?.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }
}
