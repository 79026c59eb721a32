// Says which real programs this machine has, so that a test that needs one is skipped by name and never silently.

import { describe } from 'vitest';
import { findCommand, findEnvoy, findKubectls, findPythonGrpc } from '../../scripts/counterparts.mjs';

export type Counterpart =
  | 'etcd'
  | 'dig'
  | 'named'
  | 'knotd'
  | 'nft'
  | 'ip'
  | 'openssl'
  | 'strace'
  | 'faketime'
  | 'kubectl'
  | 'envoy'
  /** Python's grpcio; its path is for PYTHONPATH. */
  | 'grpcio'
  | 'conntrack'
  | 'curl'
  | 'chromium'
  | 'prometheus'
  | 'promtool'
  | 'systemd-analyze';

const paths = new Map<Counterpart, string | undefined>();
let foundKubectls: ReturnType<typeof findKubectls> | undefined;

/** The path of a program, or undefined. kubectl counts only from 1.29 on, and of several the newest is taken. */
export function pathOf(counterpart: Counterpart): string | undefined {
  if (!paths.has(counterpart)) {
    paths.set(counterpart, find(counterpart));
  }
  return paths.get(counterpart);
}

function find(counterpart: Counterpart): string | undefined {
  if (counterpart === 'kubectl') return kubectls().at(-1)?.path;
  if (counterpart === 'grpcio') return findPythonGrpc();
  return counterpart === 'envoy' ? findEnvoy() : findCommand(counterpart);
}

/** Every kubectl from 1.29 on that this machine has, the oldest first. */
export function kubectls(): readonly { readonly minor: number; readonly path: string }[] {
  return (foundKubectls ??= findKubectls());
}

/** `describe` that is skipped, and counted as skipped, unless every named program is here. */
export function describeWith(counterparts: readonly Counterpart[], name: string, body: () => void): void {
  const missing = counterparts.filter((counterpart) => pathOf(counterpart) === undefined);
  const label = missing.length === 0 ? name : `${name} (needs ${missing.join(', ')})`;
  describe.skipIf(missing.length > 0)(label, body);
}
