// DNS labels and host names as Kubernetes checks them. Pure. Lengths are checked before patterns, so that no pattern ever
// sees a long text.

/** Returns the problems of a text; empty if there are none. */
export type TextRule = (text: string) => string[];

const labelPattern = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const label1035Pattern = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const subdomainPattern = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
export const edges = 'begin and end with a letter or digit';
const labelText = `must be lower case letters, digits or '-', and ${edges}`;
const label1035Text = "must be lower case letters, digits or '-', begin with a letter and end with a letter or digit";
const subdomainText = `must be lower case letters, digits, '-' or '.', and each part must ${edges}`;
export function bounded(lengthMax: number, pattern: RegExp, wording: string): TextRule {
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

/** Whether a name is this domain or below it. Letter case and a final dot do not matter. */
export function isDnsUnder(name: string, domain: string): boolean {
  const [inner, outer] = [withoutFinalDot(name).toLowerCase(), withoutFinalDot(domain).toLowerCase()];
  return inner === outer || inner.endsWith(`.${outer}`);
}

export function withoutFinalDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name;
}
