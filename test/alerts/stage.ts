// The processes of `npm run check:alerts`, the folder that they share, and the Prometheus that scrapes them.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRealHost } from '../../src/base/real/host.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import { type Client, createClient } from '../../src/kube/client/client.ts';
import { findHome } from '../../src/kube/client/kubeconfig.ts';
import { AlertWatch, hastyRules } from '../support/alert-watch.ts';
import { type ApiProcess, startApi } from '../support/api-process.ts';
import { homeTarget, seriesOfAlerts, type Target, TestPrometheus, targetsIn } from '../support/prometheus.ts';
import { type RoleProcess, startRole } from '../support/roles.ts';

/** The rules look back minutes, which a fault here need not last. Several scrapes fit in. */
const window = '10s';
const waitMs = 60_000;

export const world = createRealWorld();

export class Stage {
  readonly folder: string;
  readonly #prometheus: TestPrometheus;
  readonly watch: AlertWatch;
  readonly #targets = new Map<string, Target>();
  readonly #stops: (() => unknown)[] = [];
  #reload: Promise<void> = Promise.resolve();

  private constructor(folder: string, prometheus: TestPrometheus) {
    this.folder = folder;
    this.#prometheus = prometheus;
    this.watch = new AlertWatch({ prometheus, waitMs });
  }

  static async open(): Promise<Stage> {
    const folder = mkdtempSync(join(tmpdir(), 'portolan-alerts-'));
    const options = { folder: join(folder, 'prometheus'), rules: hastyRules(window), targets: [] };
    return new Stage(folder, await TestPrometheus.start(options));
  }

  /** The newest is stopped first, and all of them even if one of them cannot be. */
  onClose(stop: () => unknown): void {
    this.#stops.push(stop);
  }

  async close(): Promise<void> {
    for (const stop of this.#stops.splice(0).reverse()) {
      try {
        await stop();
      } catch (error) {
        console.log(`not stopped: ${(error as Error).message}`);
      }
    }
    await this.#prometheus.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** An alert also ends when a part stops or shows its metrics no more, which mends nothing. */
  async isMeasured(alert: string, about: string): Promise<boolean> {
    const selector = this.#targets.has(about) ? `{instance="${about}"}` : '';
    const metrics = seriesOfAlerts('with gateways').flatMap(([name, metric]) => (name === alert ? [metric] : []));
    const found = await Promise.all(metrics.map((metric) => this.#prometheus.query(`${metric}${selector}`)));
    return found.every((samples) => samples.length > 0);
  }

  /** Not scraped: most faults are not about homes. */
  async startHome(
    name: string,
    options: { port?: number; data?: string; args?: readonly string[] } = {},
  ): Promise<ApiProcess> {
    const data = options.data ?? join(this.folder, name);
    const home = await startApi({ ...options, data, args: ['--log-level', 'error', ...(options.args ?? [])] });
    this.onClose(() => home.stop('SIGKILL'));
    return home;
  }

  async clientOf(kubeconfig: string): Promise<Client> {
    const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig });
    const client = createClient(world.network.http(access), { world, userAgent: 'check-alerts' });
    this.onClose(() => client.close());
    return client;
  }

  /** Scraped under that name. A part that is started again takes the place of the earlier one. */
  async startPart(name: string, args: readonly string[]): Promise<RoleProcess> {
    const part = await startRole([...args, '--admin-listen', '127.0.0.1:0', '--log-level', 'error']);
    this.onClose(() => part.stop('SIGKILL'));
    await this.scrape({ name, url: part.admin });
    return part;
  }

  /** `portolan up`, whose parts are scraped as agent-NAME and so on. */
  async startUp(name: string, args: readonly string[]): Promise<RoleProcess> {
    const own = ['--data', join(this.folder, name), '--dashboard', 'none', '--dns-listen', '127.0.0.1:0'];
    const up = await startRole(['up', ...own, '--log-level', 'error', ...args], /Ctrl-C/);
    this.onClose(() => up.stop('SIGKILL'));
    await this.scrape(...targetsIn(name, up.out()));
    return up;
  }

  scrapeHome(name: string, kubeconfig: string): Promise<void> {
    return this.scrape(homeTarget({ name, kubeconfig, folder: this.folder }));
  }

  /** One after the other: chains of faults add targets at the same time. */
  scrape(...targets: readonly Target[]): Promise<void> {
    for (const target of targets) this.#targets.set(target.name, target);
    this.#reload = this.#reload.then(() => this.#prometheus.setTargets([...this.#targets.values()]));
    return this.#reload;
  }
}
