// Asks status, doctor, the dashboard, conditions and DNS about every second, each on its own, and passes the answers on. Commands
// run in this process: starting a program every second for each of them would keep the machine busy.

import { request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { errorText } from '../../src/base/log.ts';
import { addDoctorCommand } from '../../src/cli/health/command.ts';
import { addStatusCommand } from '../../src/cli/health/status.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import type { Message } from '../../src/dashboard/wire/rows.ts';
import { askUdp } from '../../src/dns/testing/edge/client.ts';
import { federationType } from '../../src/federation/kinds/federation.ts';
import type { Client } from '../../src/kube/client/client.ts';
import type { AnyObject } from '../../src/kube/objects/object.ts';
import type { Asker } from './expectations.ts';
import { type ClusterId, clusters } from './faults.ts';
import { conditionLines, DashboardRows, doctorLines, statusLines } from './lines.ts';
import type { Answer } from './model.ts';
import { type Stage, set } from './stage.ts';
import { type AddCommands, typed } from './typed.ts';

const everyMs = 1_000;
/** Conditions are read with a bound; a home that does not answer tells nothing. */
const readMsMax = 4_000;
/** The page calls its stream dead after two beats that did not come. */
const beatMsMax = 12_000;

export class Askers {
  readonly #stage: Stage;
  readonly #take: (answer: Answer) => void;
  readonly #stops: (() => void)[] = [];
  readonly #loops: Promise<void>[] = [];
  #isStopped = false;

  constructor(stage: Stage, take: (answer: Answer) => void) {
    this.#stage = stage;
    this.#take = take;
  }

  async start(): Promise<void> {
    const places = ['broker', ...clusters] as const;
    for (const place of places) {
      const kubeconfig = this.#stage.kubeconfigOf(place);
      const client = await this.#stage.clientOf(kubeconfig);
      this.#loop(`status@${place}`, async () => {
        const text = await typed(addStatusCommand, ['status', '-o', 'json', '--kubeconfig', kubeconfig]);
        return statusLines(this.#stage.names, place, JSON.parse(text));
      });
      this.#loop(`doctor@${place}`, async () => {
        const add: AddCommands = (program, deps) => addDoctorCommand(program, deps, async () => {});
        const text = await typed(add, ['doctor', '-o', 'json', '--kubeconfig', kubeconfig]);
        return doctorLines(this.#stage.names, place, JSON.parse(text));
      });
      this.#loop(`conditions@${place}`, () => conditionsOf(client, place));
    }
    for (const id of clusters) this.#loop(`dns@${id}`, () => this.#resolve(id));
    this.#followDashboard();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const stop of this.#stops) stop();
    await Promise.all(this.#loops);
  }

  /** What cannot be asked says `away`. */
  #loop(asker: Asker, ask: () => Promise<readonly string[]> | readonly string[]): void {
    const run = async () => {
      while (!this.#isStopped) {
        const askedMs = performance.now();
        let says: readonly string[];
        try {
          says = await ask();
        } catch (error) {
          says = [`away ${errorText(error).split('\n')[0]}`];
        }
        if (this.#isStopped) return;
        this.#take({ asker, askedMs, answeredMs: performance.now(), says });
        await pause(Math.max(200, everyMs - (performance.now() - askedMs)));
      }
    };
    this.#loops.push(run());
  }

  async #resolve(id: ClusterId): Promise<string[]> {
    const target = { host: '127.0.0.1', port: this.#stage.dnsPortOf(id) };
    const names: [string, string][] = [
      ...clusters.map((one): [string, string] => [`pay-${one}`, `pay-${one}.shop.svc.clusterset.local`]),
      ['checkout', 'checkout.shop.svc.clusterset.local'],
      ['federated checkout', 'checkout.shop.world.svc.federation'],
    ];
    const lines = await Promise.all(
      names.map(async ([short, name]) => {
        const text = await askUdp(target, `${name} A`);
        return /\d+\.\d+\.\d+\.\d+/.test(text) ? [] : [`no address: ${short}`];
      }),
    );
    return lines.flat();
  }

  #followDashboard(): void {
    const { dashboardUrl, dashboardToken } = this.#stage;
    let rows: DashboardRows | undefined;
    let heardMs = 0;
    let why = 'not connected yet';
    const open = () => {
      if (this.#isStopped) return;
      let rest = '';
      const again = (reason: string) => {
        if (rows === fresh || rows === undefined) [rows, why] = [undefined, reason];
        call.destroy();
        setTimeout(open, everyMs);
      };
      let fresh: DashboardRows | undefined;
      const headers = { authorization: `Bearer ${dashboardToken}` };
      const call = request(`${dashboardUrl}/api/stream`, { headers }, (response) => {
        response.setEncoding('utf8').on('data', (text: string) => {
          const lines = (rest + text).split('\n');
          rest = lines.pop()!;
          for (const message of lines.map((line) => JSON.parse(line) as Message)) {
            heardMs = performance.now();
            if (message.kind !== 'change') continue;
            fresh ??= new DashboardRows();
            rows = fresh;
            fresh.apply(message.changes);
          }
        });
        response.once('close', () => again('the stream ended'));
        response.on('error', () => {});
      });
      call.once('error', (error) => {
        if (fresh === undefined) again(error.message);
      });
      // A frozen server takes the connection and is silent.
      const silence = setInterval(() => {
        if (performance.now() - Math.max(heardMs, openedMs) > beatMsMax)
          call.destroy(new Error('the stream is silent'));
      }, 1_000);
      const openedMs = performance.now();
      call.once('close', () => clearInterval(silence));
      this.#stops.push(() => {
        clearInterval(silence);
        call.destroy();
      });
      call.end();
    };
    open();
    this.#loop('dashboard', () => {
      if (rows === undefined) throw new Error(why);
      return rows.lines(this.#stage.names);
    });
  }
}

async function conditionsOf(client: Client, place: ClusterId | 'broker'): Promise<string[]> {
  const list = async (type: typeof serviceExportType, namespace: string) => {
    const { items } = await client.list<AnyObject>(type, { namespace, timeoutMs: readMsMax });
    return conditionLines(type.kind, items as never);
  };
  if (place === 'broker') return list(federationType, set);
  return (await Promise.all([list(serviceExportType, 'shop'), list(serviceImportType, 'shop')])).flat().sort();
}
