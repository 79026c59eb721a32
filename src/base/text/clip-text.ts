// Text for people that must not be longer than a field holds.

/** At most `lengthMax` characters; a cut is marked. */
export function clipText(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text;
  const mark = `… (${text.length} characters)`;
  return `${text.slice(0, Math.max(0, lengthMax - mark.length))}${mark}`;
}
