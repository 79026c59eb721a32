// Commands in network namespaces. Needs root.

import { execFileSync } from 'node:child_process';
import { pathOf } from './counterparts.ts';

export function inNamespace(name: string, words: readonly string[], input?: string): string {
  return execFileSync(pathOf('ip')!, ['netns', 'exec', name, ...words], { input, encoding: 'utf8' });
}
