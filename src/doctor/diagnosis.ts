// Runs the checks over what was read of each cluster, and makes one document of what they found and what could not be
// checked. Pure.

import { errorText } from '../base/log.ts';
import { formatTime } from '../kube/objects/conditions.ts';
import { type Code, codes, docsOf, type Severity, severities } from './codes.ts';
import { type ClusterFacts, NotRead } from './facts.ts';

/** The result of a check; the rest follows from its code. */
export interface Found {
  readonly subject: string;
  readonly message: string;
  /** Since when, RFC 3339, if that is known. */
  readonly since?: string;
  readonly severity?: Severity;
  readonly fix?: string;
}

/** A check that asks parts may have reached only some of them, or found none to ask. */
interface PartlyChecked {
  readonly found: readonly Found[];
  readonly unasked: readonly string[];
  readonly idle: string;
}

/** Throws NotRead if what it needs could not be read. */
export type Check = (facts: ClusterFacts) => readonly Found[] | PartlyChecked;

export interface Finding extends Required<Omit<Found, 'since'>> {
  readonly code: Code;
  readonly title: string;
  readonly cluster: string;
  readonly since?: string;
  readonly observedAt: string;
  readonly means: string;
  readonly docs: string;
}

export interface Skipped {
  readonly code: Code;
  readonly cluster: string;
  readonly why: string;
  /** Nothing in this cluster could be checked by it: there is no such part. */
  readonly isIdle?: true;
  /** A part did not answer; the other parts were checked. */
  readonly isUnasked?: true;
}

export interface Diagnosis {
  /** Whether every check ran in every cluster that has something to check. */
  readonly complete: boolean;
  readonly clusters: readonly { readonly cluster: string; readonly reached: boolean }[];
  readonly findings: readonly Finding[];
  readonly skipped: readonly Skipped[];
}

export type Checks = Readonly<Partial<Record<Code, Check>>>;

export function diagnose(clusters: readonly ClusterFacts[], checks: Checks): Diagnosis {
  const findings: Finding[] = [];
  const skipped: Skipped[] = [];
  for (const facts of clusters) {
    for (const [name, check] of Object.entries(checks)) {
      const code = name as Code;
      try {
        const { found, unasked, idle } = resultOf(check(facts));
        findings.push(...found.map((one) => findingOf(code, one, facts)));
        skipped.push(...unasked.map((why) => ({ code, cluster: facts.cluster, why, isUnasked: true as const })));
        if (idle !== '') skipped.push({ code, cluster: facts.cluster, why: idle, isIdle: true });
      } catch (error) {
        const { cluster } = facts;
        skipped.push({ code, cluster, why: errorText(error) });
        if (error instanceof NotRead) continue;
        const found = { subject: code, message: `the check ${code} failed: ${errorText(error)}` };
        findings.push(findingOf('PTL0001', found, facts));
      }
    }
  }
  return {
    complete: skipped.every(({ isIdle }) => isIdle),
    clusters: clusters.map(({ cluster, health }) => ({ cluster, reached: 'value' in health })),
    findings: findings.sort(worstFirst),
    skipped,
  };
}

function resultOf(result: ReturnType<Check>): PartlyChecked {
  return 'found' in result ? result : { found: result, unasked: [], idle: '' };
}

function findingOf(code: Code, found: Found, { cluster, nowMs }: ClusterFacts): Finding {
  const { title, severity, means, fix } = codes[code];
  const named = withNames(found.fix ?? fix, found);
  const observedAt = formatTime(nowMs);
  return { code, severity, title, ...found, fix: named, cluster, observedAt, means, docs: docsOf(code) };
}

/** A next step with the names of its subject, to be copied as it is; of several, with those of the first. */
export function withNames(fix: string, { subject, message }: Pick<Found, 'subject' | 'message'>): string {
  const [key] = /[a-z0-9.-]+\/[a-z0-9.-]+/.exec(subject) ?? firstOfGroup(subject, message);
  const [domain] = /^[a-z0-9-]+(\.[a-z0-9-]+)+/.exec(subject) ?? [];
  const [namespace, name] = key?.split('/') ?? [];
  const [, cluster] = /^cluster ([a-z0-9.-]+)$/.exec(subject) ?? [];
  let text = fix;
  if (key !== undefined) text = text.replaceAll('NAMESPACE/NAME', key);
  if (namespace !== undefined) text = text.replace(/\bNAMESPACE\b(?!\/)/g, namespace);
  if (cluster !== undefined) text = text.replace(/\bCLUSTER\b/g, cluster);
  const own = domain ?? name;
  return own === undefined ? text : text.replace(/(?<![/A-Z])\bNAME\b/g, own);
}

/** `3 ServiceImports`, whose names the message begins with. */
function firstOfGroup(subject: string, message: string): readonly string[] {
  return /^\d+ /.test(subject) ? (/^[a-z0-9.-]+\/[a-z0-9.-]+(?=[,:])/.exec(message) ?? []) : [];
}

function worstFirst(a: Finding, b: Finding): number {
  const rank = (one: Finding) => severities.indexOf(one.severity);
  return rank(b) - rank(a) || (a.code < b.code ? -1 : Number(a.code > b.code));
}
