// How long something took or how old it is, as kubectl writes it. Pure.

const [minute, hour, day, year] = [60, 3600, 86_400, 31_536_000];

/** Two units while they matter, one when they do not: `45s`, `3m20s`, `5h12m`, `2d4h`, `40d`, `2y10d`. */
export function formatElapsed(elapsedMs: number): string {
  const seconds = Math.floor(elapsedMs / 1000);
  if (seconds < -1) return '<invalid>';
  if (seconds < 2 * minute) return `${Math.max(seconds, 0)}s`;
  if (seconds < 10 * minute) return pair(seconds, [minute, 'm'], [1, 's']);
  if (seconds < 3 * hour) return `${Math.floor(seconds / minute)}m`;
  if (seconds < 8 * hour) return pair(seconds, [hour, 'h'], [minute, 'm']);
  if (seconds < 2 * day) return `${Math.floor(seconds / hour)}h`;
  if (seconds < 8 * day) return pair(seconds, [day, 'd'], [hour, 'h']);
  if (seconds < 2 * year) return `${Math.floor(seconds / day)}d`;
  return seconds < 8 * year ? pair(seconds, [year, 'y'], [day, 'd']) : `${Math.floor(seconds / year)}y`;
}

/** A moment for people: `in 24h (2026-05-02T10:00:00Z)`, `3d ago (…)`. */
export function formatMoment(atMs: number, nowMs: number): string {
  if (Number.isNaN(atMs)) return 'at an unknown time';
  const stamp = new Date(atMs).toISOString().replace(/\.\d+Z$/, 'Z');
  // A token that was given a day a moment ago still has a day.
  return atMs > nowMs
    ? `in ${formatElapsed(1000 * Math.ceil((atMs - nowMs) / 1000))} (${stamp})`
    : `${formatElapsed(nowMs - atMs)} ago (${stamp})`;
}

type Unit = readonly [size: number, name: string];

function pair(seconds: number, [bigSize, big]: Unit, [smallSize, small]: Unit): string {
  const rest = Math.floor((seconds % bigSize) / smallSize);
  return `${Math.floor(seconds / bigSize)}${big}${rest === 0 ? '' : `${rest}${small}`}`;
}
