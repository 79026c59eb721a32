// Objects that are there only with certain values. `portolan install` looks at the value, the chart has a condition. Pure.

import type { Manifest } from '../kube/objects/manifest.ts';
import type { Values } from './values.ts';

export interface Gate {
  /** Path of the value, such as dns.workload. */
  readonly path: string;
  /** Any value but an empty one if absent. */
  readonly equals?: string | boolean;
}

export interface Gated {
  readonly manifest: Manifest;
  readonly gate?: Gate;
}

export const always = (manifests: readonly Manifest[]): Gated[] => manifests.map((manifest) => ({ manifest }));
export const gated = (gate: Gate, manifests: readonly Manifest[]): Gated[] =>
  manifests.map((manifest) => ({ manifest, gate }));

export function isOpen({ gate }: Gated, values: Values): boolean {
  if (gate === undefined) return true;
  const value = gate.path.split('.').reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], values);
  return gate.equals === undefined ? value !== '' : value === gate.equals;
}

export function templateCondition({ path, equals }: Gate): string {
  return typeof equals !== 'string' ? `.Values.${path}` : `eq .Values.${path} ${JSON.stringify(equals)}`;
}
