// Whether this machine gives a program its share of a processor. A process of its own, without any of our code, does a fixed amount
// of work again and again and prints how many times longer it took than the processor needed. While that is more than a bound,
// nothing that is asked here says anything about the programs that are asked.

import { type ChildProcess, spawn } from 'node:child_process';

/** Forty milliseconds of a processor took more than half a second. */
const slownessMax = 12;
const work = `
  const burn = () => {
    const startedMs = performance.now();
    const before = process.cpuUsage();
    for (;;) {
      const { user, system } = process.cpuUsage(before);
      if (user + system >= 40_000) return (performance.now() - startedMs) / ((user + system) / 1000);
    }
  };
  const again = () => { console.log(burn().toFixed(1)); setTimeout(again, 460); };
  again();
`;

export interface Starved {
  readonly fromMs: number;
  toMs: number;
}

export class Machine {
  readonly #child: ChildProcess;
  /** Times at which it was too slow, by the clock of this process. */
  readonly starved: Starved[] = [];
  #heardMs = performance.now();
  slowest = 1;

  constructor(slowMax = slownessMax) {
    this.#child = spawn(process.execPath, ['-e', work], { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      const slowness = Math.max(...text.trim().split('\n').map(Number));
      const [fromMs, toMs] = [this.#heardMs, performance.now()];
      this.#heardMs = toMs;
      this.slowest = Math.max(this.slowest, slowness);
      if (slowness < slowMax) return;
      const last = this.starved.at(-1);
      if (last !== undefined && last.toMs === fromMs) last.toMs = toMs;
      else this.starved.push({ fromMs, toMs });
    });
  }

  stop(): void {
    this.#child.kill('SIGKILL');
  }
}
