// Which members watch the heartbeats of all others and report who is silent. The first members by id that live do;
// whoever comes after them steps in when they are too few. There is no appointment: each member decides for itself
// from the reports and heartbeats it sees, and for a moment there may be more or fewer. Pure.

/** An observer and two who stand in. In sets of no more members everybody watches and nobody reports. */
export const seatsMax = 3;

export interface SeatRequest {
  readonly self: string;
  /** Ids of all members. */
  readonly ids: readonly string[];
  /** Whether the member is seen to observe now. */
  readonly isJudging: (id: string) => boolean;
  readonly isAlive: (id: string) => boolean;
  readonly isSeated: boolean;
  /** For how long too few have been seen to observe. */
  readonly shortMs: number;
  /** How long those before us are left to take the seat. */
  readonly patienceMs: number;
}

export function isSeatOurs(request: SeatRequest): boolean {
  const { self, ids, isJudging, isAlive, isSeated, shortMs, patienceMs } = request;
  const before = ids.filter((id) => id < self);
  const free = seatsMax - before.filter(isJudging).length;
  if (free <= 0) return false;
  const candidates = before.filter((id) => !isJudging(id) && isAlive(id)).length;
  // Members that were invited and never came count as alive: they must not keep the seats empty.
  return candidates < free || isSeated || shortMs >= patienceMs;
}
