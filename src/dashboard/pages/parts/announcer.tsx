// Tells screen readers what changed, at most one sentence in ten seconds.

import { useEffect, useRef, useState } from 'react';
import { useConnection, useRows } from '../data/hooks.ts';
import { count } from './format.ts';

const everyMs = 10_000;

export function Announcer() {
  const problems = useRows('problems').length;
  const { kind } = useConnection();
  const text = kind === 'live' ? `${count(problems, 'problem')} now` : `The page is ${kind}`;
  const [said, setSaid] = useState(text);
  const lastMs = useRef(0);
  useEffect(() => {
    const waitMs = Math.max(0, lastMs.current + everyMs - Date.now());
    const timer = setTimeout(() => {
      lastMs.current = Date.now();
      setSaid(text);
    }, waitMs);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <div className="only-read" aria-live="polite">
      {said}
    </div>
  );
}
