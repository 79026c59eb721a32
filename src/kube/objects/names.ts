// Validation of names, label keys and label values, by the rules of Kubernetes. Pure. Lengths are checked before
// patterns, so that no pattern ever sees a long text.

import { bounded, edges, isDnsSubdomain, type TextRule } from '../../base/dns/labels.ts';

const qualifiedPattern = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const configKeyPattern = /^[-._a-zA-Z0-9]+$/;
const pathSegmentLengthMax = 1024;
const environmentNamePattern = /^[ -<>-~]+$/;

const qualifiedText = `must be letters, digits, '-', '_' or '.', and ${edges}`;
const configKeyText = "must be letters, digits, '-', '_' or '.'";
const environmentNameText = "must be printable ASCII characters other than '='";

const isQualifiedPart: TextRule = bounded(63, qualifiedPattern, `name part ${qualifiedText}`);
const isFilledLabelValue: TextRule = bounded(63, qualifiedPattern, `${qualifiedText}, or be empty`);

export const isLabelValue: TextRule = (text) => (text === '' ? [] : isFilledLabelValue(text));

/** An optional DNS subdomain and a slash, then a short name: label keys, annotation keys, finalizers. */
export const isQualifiedName: TextRule = (text) => {
  const parts = text.split('/', 3);
  if (parts.length > 2) return ["must be a name, or a DNS subdomain, one '/' and a name"];
  const name = parts.at(-1) ?? '';
  const wrongName = name === '' ? ['name part must be non-empty'] : isQualifiedPart(name);
  return parts.length === 1 ? wrongName : [...wrongPrefix(parts[0] ?? ''), ...wrongName];
};

function wrongPrefix(prefix: string): string[] {
  if (prefix === '') return ['prefix part must be non-empty'];
  return isDnsSubdomain(prefix).map((why) => `prefix part ${why}`);
}

/** A segment of a path: names of roles and bindings. */
export const isPathSegment: TextRule = (text) => {
  if (text === '.' || text === '..') return [`must not be '${text}'`];
  if (text.length > pathSegmentLengthMax) return [`must be no more than ${pathSegmentLengthMax} characters`];
  if (!text.isWellFormed() || text.includes('\0')) return ['must be Unicode text'];
  return ['/', '%'].filter((sign) => text.includes(sign)).map((sign) => `must not contain '${sign}'`);
};

/** Keys of ConfigMaps and Secrets: they become file names. */
export const isConfigKey: TextRule = (text) => {
  if (text === '.' || text === '..') return [`must not be '${text}'`];
  if (text.startsWith('..')) return ["must not start with '..'"];
  return bounded(253, configKeyPattern, configKeyText)(text);
};

export const isEnvironmentName: TextRule = (text) => {
  if (text === '') return ['must be non-empty'];
  return environmentNamePattern.test(text) ? [] : [environmentNameText];
};

/** RFC 6335 section 5.1, as Kubernetes reads it: a port's name. */
export const isPortName: TextRule = (text) => {
  const wrong: string[] = [];
  if (text.length > 15) wrong.push('must be no more than 15 characters');
  if (text.length > 63 || !/^[-a-z0-9]+$/.test(text)) {
    wrong.push("must be lower case letters, digits or '-'");
  }
  if (!/[a-z]/.test(text)) wrong.push('must contain a letter');
  if (text.includes('--')) wrong.push("must not contain '--'");
  if (text.startsWith('-') || text.endsWith('-')) wrong.push("must not begin or end with '-'");
  return wrong;
};
