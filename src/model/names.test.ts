import { describe, expect, test } from 'vitest';
import {
  isConfigKey,
  isDns1035Label,
  isDnsLabel,
  isDnsSubdomain,
  isEnvironmentName,
  isLabelValue,
  isPortName,
  isQualifiedName,
  type TextRule,
} from './names.ts';

const rules: Readonly<Record<string, TextRule>> = {
  isConfigKey,
  isDns1035Label,
  isDnsLabel,
  isDnsSubdomain,
  isEnvironmentName,
  isLabelValue,
  isPortName,
  isQualifiedName,
};

describe('names: what follows the rule -> nothing to say', () => {
  test.each([
    ['isDnsLabel', '0a-b'],
    ['isDnsLabel', 'a'.repeat(63)],
    ['isDns1035Label', 'a-0'],
    ['isDnsSubdomain', 'a.b-c.0'],
    ['isDnsSubdomain', `${'a'.repeat(63)}.${'b'.repeat(180)}`],
    ['isQualifiedName', 'app'],
    ['isQualifiedName', 'example.com/My_Name.x'],
    ['isLabelValue', ''],
    ['isLabelValue', 'v1.2_B'],
    ['isConfigKey', '.hidden-file_1'],
    ['isConfigKey', 'a..b'],
    ['isEnvironmentName', 'A.b-1'],
    ['isPortName', 'http-2'],
  ])('%s %s', (rule, text) => {
    expect(rules[rule]!(text)).toEqual([]);
  });
});

describe('names: what breaks the rule -> why, in the words of Kubernetes', () => {
  test.each([
    ['isDnsLabel', '', 'a lowercase RFC 1123 label must consist of'],
    ['isDnsLabel', 'A', 'a lowercase RFC 1123 label must consist of'],
    ['isDnsLabel', 'a.b', 'a lowercase RFC 1123 label must consist of'],
    ['isDnsLabel', '-a', 'a lowercase RFC 1123 label must consist of'],
    ['isDnsLabel', 'a'.repeat(64), 'must be no more than 63 characters'],
    ['isDns1035Label', '0a', 'a DNS-1035 label must consist of'],
    ['isDnsSubdomain', 'a..b', 'a lowercase RFC 1123 subdomain must consist of'],
    ['isDnsSubdomain', 'a'.repeat(254), 'must be no more than 253 characters'],
    ['isQualifiedName', '', 'name part must be non-empty'],
    ['isQualifiedName', '/a', 'prefix part must be non-empty'],
    ['isQualifiedName', 'Ex_ample/a', 'prefix part a lowercase RFC 1123 subdomain'],
    ['isQualifiedName', 'a/', 'name part must be non-empty'],
    ['isQualifiedName', '-a', 'name part must consist of'],
    ['isQualifiedName', 'a/b/c', 'a qualified name must consist of'],
    ['isLabelValue', 'a b', 'a valid label must be an empty string or consist of'],
    ['isLabelValue', 'a'.repeat(64), 'must be no more than 63 characters'],
    ['isConfigKey', '..', "must not be '..'"],
    ['isConfigKey', '..a', "must not start with '..'"],
    ['isConfigKey', 'a/b', 'a valid config key must consist of'],
    ['isEnvironmentName', 'a=b', "printable ASCII characters other than '='"],
    ['isPortName', '80', 'must contain at least one letter'],
    ['isPortName', 'a--b', 'must not contain consecutive hyphens'],
    ['isPortName', 'a-', 'must not begin or end with a hyphen'],
    ['isPortName', 'a-name-of-16-let', 'must be no more than 15 characters'],
  ])('%s %s', (rule, text, why) => {
    expect(rules[rule]!(text).join('; ')).toContain(why);
  });

  test('a text of a megabyte -> refused without looking at it', () => {
    const long = 'a'.repeat(1 << 20);
    for (const rule of Object.values(rules)) rule(long);
    expect(isDnsSubdomain(long)).toEqual(['must be no more than 253 characters']);
  });
});
