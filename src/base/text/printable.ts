// Text that others wrote, on its way to a terminal or a log. Characters that a terminal acts on, or that turn the order of
// reading around, are written as \u escapes: a condition or a refusal cannot hide or fake what is printed. Pure.

const acting = /[\p{Cc}\p{Bidi_Control}]/gu;

/** Keeps line ends and tabs. */
export function printable(text: string): string {
  return text.replace(acting, (found) => (found === '\n' || found === '\t' ? found : escaped(found)));
}

/** Escapes line ends too: a cell of a table is no place to begin another row. */
export function printableLine(text: string): string {
  return text.replace(acting, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
