// The parts of the xDS service that a stream needs.

import type { World } from '../../base/world.ts';
import type { Place } from '../../clusterset/rules/choice/locality.ts';
import type { Entry } from '../view/entry.ts';
import type { ViewIndex } from '../view/view-index.ts';
import type { XdsMeter } from './meter.ts';
import type { Proxies } from './proxies.ts';

/** Something that sends when it is woken. */
export interface Pumped {
  pump(): void;
}

export interface StreamContext {
  readonly world: Pick<World, 'clock' | 'timers'>;
  readonly cluster: string;
  readonly proxies: Proxies;
  readonly views: ViewIndex;
  readonly proven: WeakSet<Entry>;
  readonly meter: XdsMeter;
  placeOf(said: { readonly zone: string; readonly region: string }): Place;
  schedule(stream: Pumped): void;
  onRefused(refusal: { readonly proxy: string; readonly entry: Entry; readonly message: string }): void;
  onRecovered(): void;
  /** A proxy has acknowledged its first listener, or one that had is gone. */
  onProgrammed(): void;
  /** A proxy that had refused something has no stream any more. */
  onLeft(): void;
  onTurnedAway(reason: string): void;
}
