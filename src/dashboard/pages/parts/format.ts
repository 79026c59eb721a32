// Times and counts as text.

export function elapsed(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3_600)} h`;
}

export function clockTime(ms: number): string {
  return new Date(ms).toTimeString().slice(0, 8);
}

export function dayTime(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ');
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function count(number: number, word: string): string {
  const plural = word.endsWith('s') ? `${word}es` : `${word}s`;
  return `${number} ${number === 1 ? word : plural}`;
}

/** A rate with its unit: `12/s`. */
export function perSecond(rate: number): string {
  return `${quantity(rate)}/s`;
}

/** With at most three digits: `1.2k`. */
function quantity(value: number): string {
  const units = ['', 'k', 'M', 'G'];
  let [rest, unit] = [value, 0];
  for (; rest >= 1_000 && unit < units.length - 1; unit += 1) rest /= 1_000;
  const digits = Number.isInteger(rest) || rest >= 100 ? 0 : 1;
  return `${rest.toFixed(digits)}${units[unit]}`;
}

/** Ends at a word. */
export function shorten(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text;
  const cut = text.slice(0, lengthMax);
  const words = cut.slice(0, Math.max(cut.lastIndexOf(' '), lengthMax / 2));
  return `${words.replace(/[\s,;:.(]+$/, '')} …`;
}

export function bytes(value: number): string {
  const text = quantity(value);
  return /[kMG]$/.test(text) ? `${text.slice(0, -1)} ${text.slice(-1)}B` : `${text} B`;
}
