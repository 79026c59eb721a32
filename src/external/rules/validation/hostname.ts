// Validation of a hostname: RFC 1123 labels, at least two, whatever their case. Pure.

import { isDnsSubdomain, type TextRule } from '../../../base/dns/labels.ts';
import { parseIp } from '../../../base/net/ip.ts';

export const isHostname: TextRule = (text) => {
  if (parseIp(text) !== undefined) return ['must be a hostname, not an address'];
  const wrong = wrongLabels(text);
  if (wrong.length > 0) return wrong;
  return text.includes('.') ? [] : ['must have at least two labels, such as mongo.ext'];
};

/** A hostname, or `*.` in front of one. */
export const isDomain: TextRule = (text) => {
  if (!text.includes('*')) return isHostname(text);
  if (!text.startsWith('*.') || text.indexOf('*', 1) > 0)
    return ["a wildcard must be '*.' at the beginning, such as *.example.com"];
  return wrongLabels(text.slice(2));
};

const labelLengthMax = 63;

function wrongLabels(text: string): string[] {
  const wrong = isDnsSubdomain(text.toLowerCase());
  if (wrong.length > 0) return wrong;
  const isLong = text.split('.').some((label) => label.length > labelLengthMax);
  return isLong ? [`each label must be no more than ${labelLengthMax} characters`] : [];
}

export function isWildcard(domain: string): boolean {
  return domain.startsWith('*.');
}
