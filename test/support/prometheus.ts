// A real Prometheus that scrapes the parts of a test, and what it answers.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { alerts } from '../../src/install/monitoring/alerts.ts';
import { dashboards } from '../../src/install/monitoring/dashboards.ts';
import { pathOf } from './counterparts.ts';
import { freePort } from './free-port.ts';
import { run } from './portolan.ts';

export interface Target {
  /** Shown as `instance`. */
  readonly name: string;
  readonly url: string;
  /** Files by which a home knows the caller. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

export class TestPrometheus {
  readonly #folder: string;
  readonly #url: string;
  readonly #child: ChildProcess;
  #errors = '';

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.#url = `http://127.0.0.1:${port}`;
    const args = [
      ...['--config.file', join(folder, 'prometheus.yaml'), '--storage.tsdb.path', join(folder, 'tsdb')],
      ...['--web.listen-address', `127.0.0.1:${port}`, '--log.level', 'warn', '--web.enable-lifecycle'],
    ];
    this.#child = spawn(pathOf('prometheus')!, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child.stderr!.setEncoding('utf8').on('data', (chunk: string) => (this.#errors += chunk));
  }

  static async start(options: {
    readonly folder: string;
    readonly rules: string;
    readonly targets: readonly Target[];
  }): Promise<TestPrometheus> {
    mkdirSync(options.folder, { recursive: true });
    writeFileSync(join(options.folder, 'rules.yaml'), options.rules);
    writeConfig(options.folder, options.targets);
    const made = new TestPrometheus(options.folder, await freePort());
    const deadlineMs = Date.now() + 30_000;
    while (!(await made.#isReady())) {
      if (Date.now() > deadlineMs) throw new Error(`prometheus was not ready in 30 s: ${made.#errors}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return made;
  }

  #isReady(): Promise<boolean> {
    return fetch(`${this.#url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  }

  /** A part that was started again has another port. */
  async setTargets(targets: readonly Target[]): Promise<void> {
    writeConfig(this.#folder, targets);
    const { ok, status } = await fetch(`${this.#url}/-/reload`, { method: 'POST' });
    if (!ok) throw new Error(`prometheus did not take its configuration: ${status} ${this.#errors}`);
  }

  async query(expression: string): Promise<Sample[]> {
    const response = await fetch(`${this.#url}/api/v1/query?${new URLSearchParams({ query: expression })}`);
    const body = (await response.json()) as { status: string; error?: string; data?: { result: Sample[] } };
    if (body.status !== 'success') throw new Error(`${expression}: ${body.error}`);
    return body.data!.result;
  }

  /** Labels of the alerts of that name that fire, without those that every alert has. */
  async firing(name: string): Promise<string[]> {
    const found = await this.query(`ALERTS{alertname="${name}",alertstate="firing"}`);
    return found
      .map(
        ({ metric }) =>
          metric['member'] ??
          metric['cluster'] ??
          metric['instance'] ??
          metric['zone'] ??
          metric['destination_cluster'] ??
          '',
      )
      .sort();
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.#child.once('exit', () => resolve());
      this.#child.kill('SIGTERM');
    });
  }
}

function writeConfig(folder: string, targets: readonly Target[]): void {
  const config = {
    // A part may take its time on a busy machine: a longer interval allows a longer scrape.
    global: { scrape_interval: '2s', scrape_timeout: '2s', evaluation_interval: '1s' },
    rule_files: ['rules.yaml'],
    scrape_configs: targets.map(({ name, url, tls }) => ({
      job_name: `portolan-${name}`,
      scheme: new URL(url).protocol.slice(0, -1),
      ...(tls === undefined
        ? {}
        : { tls_config: { cert_file: tls.cert, key_file: tls.key, insecure_skip_verify: true } }),
      static_configs: [{ targets: [new URL(url).host], labels: { instance: name } }],
    })),
  };
  writeFileSync(join(folder, 'prometheus.yaml'), stringify(config));
}

export async function promtool(args: readonly string[], input?: string): Promise<string> {
  const { code, out, err } = await run(pathOf('promtool')!, args, input === undefined ? {} : { input });
  if (code !== 0) throw new Error(`promtool ${args.join(' ')} ended with ${code}: ${out}${err}`);
  return out;
}

/** A home is scraped with the certificate of its admin. */
export function homeTarget(home: {
  readonly name: string;
  readonly kubeconfig: string;
  readonly folder: string;
}): Target {
  const { clusters, users } = parse(readFileSync(home.kubeconfig, 'utf8'));
  const user = users[0].user as Record<string, string>;
  const write = (file: string, data: string) => {
    const path = join(home.folder, `${home.name}-${file}`);
    writeFileSync(path, Buffer.from(data, 'base64'));
    return path;
  };
  const tls = {
    cert: write('client.crt', user['client-certificate-data']!),
    key: write('client.key', user['client-key-data']!),
  };
  return { name: `home-${home.name}`, url: clusters[0].cluster.server, tls };
}

/** Each part of a process by the line that names its admin endpoint. */
export function targetsIn(name: string, out: string): Target[] {
  const admins = [...out.matchAll(/^(\w+) .*?admin (http:\S+)$/gm), ...out.matchAll(/^(admin) (http:\S+)$/gm)];
  return admins.map(([, found, url]) => ({ name: found === 'admin' ? name : `${found}-${name}`, url: url! }));
}

/** There only where clusters lie in other networks, or limit calls; these metrics have tests of their own. */
const notEverywhere = ['portolan_gateway_reachable', 'portolan_proxy_access_enforced', 'portolan_proxy_access_refused'];
const isEverywhere = (text: string) => !notEverywhere.some((metric) => text.includes(metric));

/** Every query of the dashboards, as Grafana would send it. */
export function seriesOfDashboards(): string[] {
  return dashboards
    .flatMap(({ panels }) => panels.flatMap(({ queries }) => queries.map(([, expression]) => expression)))
    .filter(isEverywhere)
    .map((expression) => expression.replaceAll('$__rate_interval', '1m').replaceAll('$__range', '1h'));
}

/** The metrics that each alert reads; those of gateways are `asked` for where there are some. */
export function seriesOfAlerts(asked?: 'with gateways'): [alert: string, metric: string][] {
  return alerts
    .flatMap(({ name, expression }) =>
      [...expression.matchAll(/\bportolan_\w+|\bup\b/g)].map(([metric]): [string, string] => [name, metric]),
    )
    .filter(([, metric]) => asked !== undefined || isEverywhere(metric));
}
