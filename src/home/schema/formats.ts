// The formats of strings that Kubernetes checks. A format not listed here is a note for people and is not checked.
// Every check takes time linear in the text.

import { isIPv4, isIPv6 } from 'node:net';

export type FormatCheck = (text: string) => boolean;

const uuid = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;
const uuid3 = /^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;
const uuid4 = /^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i;
const uuid5 = /^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i;
const dnsLabel = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const hostLabel = /^[a-zA-Z0-9_]([-a-zA-Z0-9_]{0,61}[a-zA-Z0-9_])?$/;
const dateTime = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)([.,]\d+)?([Zz]|[+-]\d\d:\d\d)$/;
const mac = /^[0-9a-f]{2}([:-])([0-9a-f]{2}\1){4}[0-9a-f]{2}$/i;
const hexColor = /^#?([0-9a-f]{3}|[0-9a-f]{6})$/i;
const goDuration = /^[+-]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$/;

const checks = new Map<string, FormatCheck>([
  ['ipv4', (text) => isIPv4(text)],
  ['ipv6', (text) => isIPv6(text) && !text.includes('%')],
  ['cidr', isCidr],
  ['date', isDate],
  ['date-time', isDateTime],
  ['datetime', isDateTime],
  ['byte', isBase64],
  ['uri', isUri],
  ['uuid', (text) => uuid.test(text)],
  ['uuid3', (text) => uuid3.test(text)],
  ['uuid4', (text) => uuid4.test(text)],
  ['uuid5', (text) => uuid5.test(text)],
  ['hostname', isHostname],
  ['email', isEmail],
  ['mac', (text) => mac.test(text)],
  ['duration', (text) => text.length <= 200 && goDuration.test(text)],
  ['hexcolor', (text) => hexColor.test(text)],
  ['k8s-short-name', (text) => dnsLabel.test(text)],
  ['k8s-long-name', (text) => text.length <= 253 && text.split('.').every((label) => dnsLabel.test(label))],
]);

export function formatCheck(format: string): FormatCheck | undefined {
  return checks.get(format);
}

function isCidr(text: string): boolean {
  const slash = text.indexOf('/');
  if (slash < 0) return false;
  const address = text.slice(0, slash);
  const bits = text.slice(slash + 1);
  if (!/^(0|[1-9]\d{0,2})$/.test(bits)) return false;
  if (isIPv4(address)) return Number(bits) <= 32;
  return isIPv6(address) && !address.includes('%') && Number(bits) <= 128;
}

function isDate(text: string): boolean {
  const parts = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text);
  return parts !== null && isCalendarDay(Number(parts[1]), Number(parts[2]), Number(parts[3]));
}

// RFC 3339 section 5.6; a leap second is 60.
export function isDateTime(text: string): boolean {
  if (text.length > 100) return false;
  const parts = dateTime.exec(text);
  if (parts === null) return false;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map(Number) as number[];
  return isCalendarDay(year!, month!, day!) && hour! <= 23 && minute! <= 59 && second! <= 60;
}

function isCalendarDay(year: number, month: number, day: number): boolean {
  const days = [31, isLeapYear(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
  return month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1]!;
}

function isLeapYear(year: number): boolean {
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
}

/** RFC 4648 section 4, padded. Line breaks inside are allowed, as Go's decoder allows them. */
function isBase64(text: string): boolean {
  const plain = text.includes('\n') || text.includes('\r') ? text.replaceAll(/[\r\n]/g, '') : text;
  if (plain.length % 4 !== 0) return false;
  const padding = plain.endsWith('==') ? 2 : plain.endsWith('=') ? 1 : 0;
  const end = plain.length - padding;
  for (let at = 0; at < end; at++) if (!isBase64Character(plain.charCodeAt(at))) return false;
  return true;
}

function isBase64Character(code: number): boolean {
  const isLetter = (code >= 65 && code <= 90) || (code >= 97 && code <= 122);
  return isLetter || (code >= 48 && code <= 57) || code === 43 || code === 47;
}

function isUri(text: string): boolean {
  return (text.startsWith('/') && !/[\s\\]/.test(text)) || (/^[a-z][a-z0-9+.-]*:/i.test(text) && URL.canParse(text));
}

function isHostname(text: string): boolean {
  const name = text.endsWith('.') ? text.slice(0, -1) : text;
  return name.length > 0 && name.length <= 253 && name.split('.').every((label) => hostLabel.test(label));
}

function isEmail(text: string): boolean {
  const at = text.lastIndexOf('@');
  return at > 0 && at <= 64 && !/[\s<>,;]/.test(text) && isHostname(text.slice(at + 1));
}
