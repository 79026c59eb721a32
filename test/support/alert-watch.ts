// The alert rules without their waiting times, and which alerts a Prometheus was seen to fire and to end.

import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import type { TestPrometheus } from './prometheus.ts';

export const rulesFile = fileURLToPath(new URL('../../deploy/monitoring/rules.yaml', import.meta.url));

/** Alerts whose faults prometheus.test.ts makes, which holds this list; `npm run check:alerts` makes those of the others. */
export const alertsOfTests: readonly string[] = [
  'PortolanPartDown',
  'PortolanBrokerUnreachable',
  'PortolanMemberSilent',
  'PortolanExportInvalid',
  'PortolanCertificateEnds',
  'PortolanPeerDisconnected',
  'PortolanServiceFailing',
];

/** The rules with no `for`. With `window`, the minutes that an expression looks back become that time. */
export function hastyRules(window?: string): string {
  const rules = parse(readFileSync(rulesFile, 'utf8'));
  for (const group of rules.groups) {
    for (const rule of group.rules) {
      rule.for = '0s';
      if (window !== undefined) rule.expr = rule.expr.replace(/\[\d+m\]/g, `[${window}]`);
    }
  }
  return stringify(rules);
}

export interface AlertWatchOptions {
  readonly prometheus: Pick<TestPrometheus, 'firing'>;
  readonly waitMs: number;
}

export class AlertWatch {
  readonly #options: AlertWatchOptions;
  readonly #fired = new Set<string>();
  readonly #ended = new Set<string>();

  constructor(options: AlertWatchOptions) {
    this.#options = options;
  }

  isFiring = async (name: string, about: string): Promise<boolean> =>
    (await this.#options.prometheus.firing(name)).includes(about);

  async fires(name: string, about: string): Promise<void> {
    await this.#until(name, about, true);
    this.#fired.add(name);
  }

  async ends(name: string, about: string): Promise<void> {
    await this.#until(name, about, false);
    if (this.#fired.has(name)) this.#ended.add(name);
  }

  /** Alerts that fired and ended, sorted. */
  seen(): string[] {
    return [...this.#ended].sort();
  }

  async #until(name: string, about: string, isWanted: boolean): Promise<void> {
    const deadlineMs = Date.now() + this.#options.waitMs;
    while ((await this.isFiring(name, about)) !== isWanted) {
      const label = about === '' ? name : `${name} of ${about}`;
      if (Date.now() > deadlineMs)
        throw new Error(`${label} ${isWanted ? 'did not fire' : 'still fires'} after ${this.#options.waitMs / 1000} s`);
      await pause(250);
    }
  }
}
