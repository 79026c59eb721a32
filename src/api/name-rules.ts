// Which rule the names of a kind follow.

import { isDns1035Label, isDnsLabel, isDnsSubdomain, type TextRule } from '../model/names.ts';
import type { NameRule } from './kind.ts';

const isPathSegment: TextRule = (text) => {
  if (text === '.' || text === '..') return [`may not be '${text}'`];
  const found = ['/', '%'].filter((sign) => text.includes(sign));
  return found.map((sign) => `may not contain '${sign}'`);
};

export const nameRules: Readonly<Record<NameRule, TextRule>> = {
  dnsSubdomain: isDnsSubdomain,
  dnsLabel: isDnsLabel,
  dns1035Label: isDns1035Label,
  pathSegment: isPathSegment,
};
