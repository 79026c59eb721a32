// A time as people say it, and the exact one on hover. A time ahead of the server's clock is called so.

import { useNowMs } from '../data/hooks.ts';
import { dayTime, elapsed } from './format.ts';

/** Clocks of machines differ a little. */
const aheadMsMax = 5_000;

export function Age({ atMs }: { readonly atMs: number }) {
  const passedMs = useNowMs() - atMs;
  const text = passedMs < -aheadMsMax ? `${elapsed(-passedMs)} ahead of this clock` : `${elapsed(passedMs)} ago`;
  return (
    <time dateTime={new Date(atMs).toISOString()} title={`${dayTime(atMs)} UTC`}>
      {text}
    </time>
  );
}
