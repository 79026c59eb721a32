// Cost of compiling a pattern, estimated from its text beforehand: about the steps of its program. Repetitions inside
// repetitions multiply, so that a short text can stand for a million steps. Never far too low; the text need not be
// valid.

/** Tables of Unicode are looked through and joined, for both cases where (?i) asks for it. */
const unicodeClassCost = 200;

/** Parsing and setting up, whatever the pattern is. */
const fixedCost = 20;

// Quoted text and classes are one token each: a parenthesis in them opens no group.
const token =
  /\\Q.*?(?:\\E|$)|\\[pPx](?:\{[^}]*\}|.)?|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\{\d+(?:,\d*)?\}|./gsu;
const unicodeClass = /\\[pP]/g;
const counted = /^\{(\d+)(,?)(\d*)\}$/;

export function patternCost(source: string): number {
  const outer: number[] = [];
  let sum = fixedCost;
  let last = 0;
  for (const [text] of source.matchAll(token)) {
    if (text === '(') {
      outer.push(sum);
      sum = 2;
      last = 0;
    } else if (text === ')') {
      last = sum;
      sum += outer.pop() ?? 0;
    } else {
      const repeat = counted.exec(text);
      const added = repeat === null ? costOfOne(text) : last * (timesOf(repeat) - 1);
      sum += added;
      last = repeat === null ? added : last + added;
    }
  }
  return outer.reduce((total, each) => total + each, sum);
}

function costOfOne(text: string): number {
  if (text.startsWith('\\Q')) return text.length;
  const classes = text.length > 1 ? (text.match(unicodeClass)?.length ?? 0) : 0;
  return 1 + classes * unicodeClassCost + text.length / 8;
}

/** An optional repetition costs one step more each time. */
function timesOf([, least, comma, most]: RegExpExecArray): number {
  if (most !== '') return Math.max(1, 2 * Number(most) - Number(least));
  return Math.max(1, Number(least) + (comma === '' ? 0 : 1));
}
