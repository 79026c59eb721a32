// What names, label keys and label values may look like, in the words of Kubernetes. Pure. Lengths are checked before
// patterns, so that no pattern ever sees a long text.

/** What is wrong with a text; empty if nothing is. */
export type TextRule = (text: string) => string[];

const labelPattern = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const label1035Pattern = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const subdomainPattern = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const qualifiedPattern = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const configKeyPattern = /^[-._a-zA-Z0-9]+$/;
const environmentNamePattern = /^[ -<>-~]+$/;

const labelText =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const label1035Text =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const subdomainText =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const qualifiedText =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const labelValueText =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const configKeyText =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const environmentNameText =
  "a valid environment variable name must consist only of printable ASCII characters other than '='";

function bounded(lengthMax: number, pattern: RegExp, wording: string): TextRule {
  return (text) => {
    if (text.length > lengthMax) return [`must be no more than ${lengthMax} characters`];
    return pattern.test(text) ? [] : [wording];
  };
}

/** RFC 1123: one part of a host name. */
export const isDnsLabel: TextRule = bounded(63, labelPattern, labelText);
/** RFC 1035: the same, but it starts with a letter. */
export const isDns1035Label: TextRule = bounded(63, label1035Pattern, label1035Text);
export const isDnsSubdomain: TextRule = bounded(253, subdomainPattern, subdomainText);
const isQualifiedPart: TextRule = bounded(63, qualifiedPattern, `name part ${qualifiedText}`);
const isFilledLabelValue: TextRule = bounded(63, qualifiedPattern, labelValueText);

export const isLabelValue: TextRule = (text) => (text === '' ? [] : isFilledLabelValue(text));

/** An optional DNS subdomain and a slash, then a short name: label keys, annotation keys, finalizers. */
export const isQualifiedName: TextRule = (text) => {
  const parts = text.split('/', 3);
  if (parts.length > 2) {
    return [
      `a qualified name ${qualifiedText} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const name = parts.at(-1) ?? '';
  const wrongName = name === '' ? ['name part must be non-empty'] : isQualifiedPart(name);
  return parts.length === 1 ? wrongName : [...wrongPrefix(parts[0] ?? ''), ...wrongName];
};

function wrongPrefix(prefix: string): string[] {
  if (prefix === '') return ['prefix part must be non-empty'];
  return isDnsSubdomain(prefix).map((why) => `prefix part ${why}`);
}

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
    wrong.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)');
  }
  if (!/[a-z]/.test(text)) wrong.push('must contain at least one letter (a-z)');
  if (text.includes('--')) wrong.push('must not contain consecutive hyphens');
  if (text.startsWith('-') || text.endsWith('-')) wrong.push('must not begin or end with a hyphen');
  return wrong;
};
