import { describe, expect, test } from 'vitest';
import { isDns1035Label, isDnsLabel, isDnsSubdomain, type TextRule } from '../../base/dns/labels.ts';
import { isConfigKey, isEnvironmentName, isLabelValue, isPathSegment, isPortName, isQualifiedName } from './names.ts';

const rules: Readonly<Record<string, TextRule>> = {
  isConfigKey,
  isDns1035Label,
  isDnsLabel,
  isDnsSubdomain,
  isEnvironmentName,
  isLabelValue,
  isPathSegment,
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
    ['isPathSegment', 'system:Größe 1'],
    ['isPortName', 'http-2'],
  ])('%s %s', (rule, text) => {
    expect(rules[rule]!(text)).toEqual([]);
  });
});

describe('names: what breaks the rule -> why', () => {
  test.each([
    ['isDnsLabel', '', "must be lower case letters, digits or '-'"],
    ['isDnsLabel', 'A', "must be lower case letters, digits or '-'"],
    ['isDnsLabel', 'a.b', "must be lower case letters, digits or '-'"],
    ['isDnsLabel', '-a', "must be lower case letters, digits or '-'"],
    ['isDnsLabel', 'a'.repeat(64), 'must be no more than 63 characters'],
    ['isDns1035Label', '0a', 'begin with a letter'],
    ['isDnsSubdomain', 'a..b', 'each part must begin and end with'],
    ['isDnsSubdomain', 'a'.repeat(254), 'must be no more than 253 characters'],
    ['isQualifiedName', '', 'name part must be non-empty'],
    ['isQualifiedName', '/a', 'prefix part must be non-empty'],
    ['isQualifiedName', 'Ex_ample/a', 'prefix part must be lower case'],
    ['isQualifiedName', 'a/', 'name part must be non-empty'],
    ['isQualifiedName', '-a', 'name part must be letters'],
    ['isQualifiedName', 'a/b/c', 'must be a name, or a DNS subdomain'],
    ['isLabelValue', 'a b', 'or be empty'],
    ['isLabelValue', 'a'.repeat(64), 'must be no more than 63 characters'],
    ['isConfigKey', '..', "must not be '..'"],
    ['isConfigKey', '..a', "must not start with '..'"],
    ['isConfigKey', 'a/b', 'must be letters, digits'],
    ['isPathSegment', '..', "must not be '..'"],
    ['isPathSegment', 'a/b', "must not contain '/'"],
    ['isPathSegment', 'a%', "must not contain '%'"],
    ['isPathSegment', 'a\0b', 'must be Unicode text'],
    ['isPathSegment', '\ud800', 'must be Unicode text'],
    ['isPathSegment', 'a'.repeat(1025), 'must be no more than 1024 characters'],
    ['isEnvironmentName', 'a=b', "printable ASCII characters other than '='"],
    ['isPortName', '80', 'must contain a letter'],
    ['isPortName', 'a--b', "must not contain '--'"],
    ['isPortName', 'a-', "must not begin or end with '-'"],
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
