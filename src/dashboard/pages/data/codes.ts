// The documentation of codes, which the same server has.

import { useEffect, useState } from 'react';
import type { CodeDoc } from '../../wire/views.ts';

/** The same for everybody, so it is read without a token, and once. */
let read: Promise<readonly CodeDoc[]> | undefined;

export function useCodeDocs(): [readonly CodeDoc[] | undefined, string] {
  const [docs, setDocs] = useState<readonly CodeDoc[]>();
  const [why, setWhy] = useState('');
  useEffect(() => {
    read ??= fetch('/docs/codes.json').then((response) => response.json() as Promise<readonly CodeDoc[]>);
    read.then(setDocs, (error: Error) => {
      read = undefined;
      setWhy(error.message);
    });
  }, []);
  return [docs, why];
}
