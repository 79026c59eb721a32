// Tables beside the rules that are not compared: connections to a silent endpoint are forgotten early, and the kernel tells of new
// ones. A kernel that cannot do one of them is left as it is: the rules do without.

import { errorText, type Log } from '../../base/log.ts';
import type { IpRange } from '../../base/net/ip.ts';
import type { Nft } from './edge/nft.ts';
import { flowsScript } from './flows-table.ts';
import { retryAfter, retryScript } from './retry-table.ts';

export interface AsideTablesOptions {
  readonly log: Log;
  readonly nft: Pick<Nft, 'apply'>;
  readonly ranges: readonly IpRange[];
  /** Whether the kernel tells of connections to clusterset addresses. */
  readonly tellsFlows: boolean;
}

export class AsideTables {
  readonly #options: AsideTablesOptions;
  #ranges: readonly IpRange[];
  #longestRttMs = 0;

  constructor(options: AsideTablesOptions) {
    this.#options = options;
    this.#ranges = options.ranges;
  }

  async setRanges(ranges: readonly IpRange[]): Promise<void> {
    this.#ranges = ranges;
    await this.write();
  }

  /** Attempts to clusters that are farther away are given more time. */
  setDistance(longestRttMs: number): void {
    const isSame = retryAfter(longestRttMs) === retryAfter(this.#longestRttMs);
    this.#longestRttMs = longestRttMs;
    if (!isSame) void this.write();
  }

  async write(): Promise<void> {
    const { log, nft, tellsFlows } = this.#options;
    const retry = retryScript(this.#ranges, retryAfter(this.#longestRttMs));
    const tables = [
      ['the kernel cannot forget single connections early: those to a silent endpoint fail', retry],
      [
        'the kernel cannot tell of single connections: no flows are recorded',
        tellsFlows ? flowsScript(this.#ranges) : '',
      ],
    ] as const;
    for (const [without, script] of tables)
      if (script !== '')
        await nft.apply(script).catch((error: unknown) => log.warn(without, { error: errorText(error) }));
  }
}
