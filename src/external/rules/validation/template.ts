// Templates of HostnameGenerators: text with `{{ name }}` and `{{ label "x" }}`. Pure.

import { isHostname } from './hostname.ts';

export type TemplatePart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'name' }
  | { readonly kind: 'label'; readonly label: string };

export type ParsedTemplate =
  | { readonly kind: 'template'; readonly parts: readonly TemplatePart[] }
  | { readonly kind: 'refused'; readonly reason: string };

export type Resolved =
  | { readonly kind: 'hostname'; readonly hostname: string }
  /** `attempt` is the text as far as it could be resolved. */
  | { readonly kind: 'unresolved'; readonly attempt: string; readonly reason: string };

export interface TemplateSubject {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

export function parseTemplate(template: string): ParsedTemplate {
  const parts: TemplatePart[] = [];
  let rest = template;
  while (rest !== '') {
    const open = rest.indexOf('{{');
    const text = open < 0 ? rest : rest.slice(0, open);
    if (text.includes('}}')) return { kind: 'refused', reason: '}} without {{ before it' };
    if (text !== '') parts.push({ kind: 'text', text });
    if (open < 0) break;
    const close = rest.indexOf('}}', open);
    if (close < 0) return { kind: 'refused', reason: '{{ without }} after it' };
    const inside = rest.slice(open + 2, close).trim();
    const part = partOf(inside);
    if (part === undefined) return { kind: 'refused', reason: `{{ ${inside} }} is not name or label "x"` };
    parts.push(part);
    rest = rest.slice(close + 2);
  }
  return { kind: 'template', parts };
}

function partOf(inside: string): TemplatePart | undefined {
  if (inside === 'name') return { kind: 'name' };
  const label = /^label\s+"([^"]+)"$/.exec(inside)?.[1];
  return label === undefined ? undefined : { kind: 'label', label };
}

export function resolveTemplate(parts: readonly TemplatePart[], subject: TemplateSubject): Resolved {
  const missing: string[] = [];
  const attempt = parts
    .map((part) => {
      if (part.kind === 'text') return part.text;
      if (part.kind === 'name') return subject.name;
      if (Object.hasOwn(subject.labels, part.label)) return subject.labels[part.label] ?? '';
      missing.push(part.label);
      return `{{ label "${part.label}" }}`;
    })
    .join('');
  if (missing.length > 0)
    return {
      kind: 'unresolved',
      attempt,
      reason: `label ${missing.map((label) => `"${label}"`).join(', ')} is missing`,
    };
  const wrong = isHostname(attempt);
  if (wrong.length > 0) return { kind: 'unresolved', attempt, reason: `"${attempt}" is not a hostname: ${wrong[0]}` };
  return { kind: 'hostname', hostname: attempt.toLowerCase() };
}
