// Rate limit for introduction tokens: guessing leads nowhere.

import { TryLimits } from '../../base/try-limits.ts';
import type { Clock } from '../../base/world.ts';

export class IntroductionLimits extends TryLimits {
  constructor(clock: Clock) {
    super(clock, { perAddress: { burst: 5, everyMs: 10_000 }, inAll: { burst: 60, everyMs: 1000 } });
  }
}
