// Only in the demo: cuts a cluster off from the broker, and heals it.

import { useState } from 'react';
import { useHello, useLive } from '../data/hooks.ts';

export function DemoButtons({ cluster }: { readonly cluster: string }) {
  const live = useLive();
  const hello = useHello();
  const [said, setSaid] = useState('');
  if (hello?.isDemo !== true) return null;
  const order = (verb: string) =>
    live.ask<{ text: string }>('/api/demo', { verb, cluster }, { method: 'POST' }).then(
      ({ text }) => setSaid(text),
      (error: Error) => setSaid(error.message),
    );
  return (
    <div className="demo-buttons">
      <button type="button" onClick={() => order('break')} aria-label={`Cut ${cluster} off`}>
        Cut off
      </button>
      <button type="button" onClick={() => order('heal')} aria-label={`Heal ${cluster}`}>
        Heal
      </button>
      <span className="small" role="status">
        {said}
      </span>
    </div>
  );
}
