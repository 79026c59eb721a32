// The context of every step of a random run, and shared helpers.

import type { Random } from '../src/base/world.ts';
import { isAlreadyExists, isNotFound } from '../src/kube/objects/api-error.ts';
import type { SimClusterSet } from './clusterset.ts';
import type { LossyNetwork } from './lossy.ts';

export interface StepContext {
  readonly set: SimClusterSet;
  readonly lossy: LossyNetwork;
  readonly random: Random;
  readonly ids: readonly string[];
  /** Backups for restoring later in the same run. */
  readonly copies: { broker?: ReturnType<SimClusterSet['broker']['backup']> };
}

export type Step = (context: StepContext, place: { id: string; key: string }) => Promise<string>;

export function pick<T>(random: Random, items: readonly T[]): T {
  return items[Math.floor(random.float() * items.length)]!;
}

export function chance(random: Random, probability: number): boolean {
  return random.float() < probability;
}

export function refOf(key: string): { namespace: string; name: string } {
  const [namespace, name] = key.split('/') as [string, string];
  return { namespace, name };
}

/** It is there already, or not any more, or would not be valid: then this step does nothing. */
export async function tolerate(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    const isInvalid = (error as { code?: number }).code === 422;
    if (!isAlreadyExists(error) && !isNotFound(error) && !isInvalid) throw error;
  }
}
