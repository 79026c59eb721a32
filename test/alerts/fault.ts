// A made fault, the alerts that must fire while it lasts, and how it is mended. It is mended even if they did not fire.

import type { Stage } from './stage.ts';

export interface Fault {
  readonly what: string;
  /** Name of the alert without its prefix, and the instance, cluster or zone that it is about. */
  readonly alerts: Readonly<Record<string, string>>;
  make(): Promise<unknown>;
  mend(): Promise<unknown>;
}

export const alertName = (name: string) => `Portolan${name}`;

/** Prints one line for each alert. Returns how many were not as they should be. */
export async function showFault(fault: Fault, stage: Stage): Promise<number> {
  const alerts = Object.entries(fault.alerts).map(([name, about]) => ({ name: alertName(name), about, problem: '' }));
  const each = async (look: (name: string, about: string) => Promise<void>) => {
    const startedMs = Date.now();
    const note = (error: Error) => error.message;
    await Promise.all(
      alerts.map(async (alert) => {
        alert.problem ||= (await look(alert.name, alert.about).catch(note)) ?? '';
      }),
    );
    return `${((Date.now() - startedMs) / 1000).toFixed(1)} s`;
  };
  const acted = async (act: () => Promise<unknown>) => {
    const error = await act().then(
      () => undefined,
      (cause: Error) => cause.message,
    );
    if (error !== undefined) for (const alert of alerts) alert.problem ||= error;
  };
  await each((name, about) => mustNotFire(stage, name, about));
  await acted(fault.make);
  const fires = await each((name, about) => stage.watch.fires(name, about));
  await acted(fault.mend);
  const ends = await each((name, about) => mustEnd(stage, name, about));
  for (const { name, problem } of alerts) {
    const result = problem === '' ? `fires (${fires}), ends (${ends})` : problem;
    console.log(`${problem === '' ? 'ok' : 'FAILED'}: ${name}: ${fault.what} -> ${result}`);
  }
  return alerts.filter(({ problem }) => problem !== '').length;
}

async function mustNotFire({ watch }: Stage, name: string, about: string): Promise<void> {
  if (await watch.isFiring(name, about)) throw new Error('it fires before the fault is made');
}

async function mustEnd(stage: Stage, name: string, about: string): Promise<void> {
  await stage.watch.ends(name, about);
  if (!(await stage.isMeasured(name, about))) throw new Error(`it ended because nothing of ${about} is measured`);
}
