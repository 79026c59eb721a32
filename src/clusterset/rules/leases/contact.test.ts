import { expect, test } from 'vitest';
import { Contact } from './contact.ts';

/** `ask@0 ok@1 fail@4`: the time in seconds for which it is lost at `atS`. */
function lost(text: string, atS: number): number | undefined {
  const contact = new Contact({ boundMs: () => 9_000, nowMs: 0 });
  for (const word of text.split(' ').filter(Boolean)) {
    const [what, seconds] = word.split('@');
    const nowMs = Number(seconds) * 1000;
    if (what === 'ask') contact.asked(nowMs);
    else if (what === 'ok') contact.answered(nowMs);
    else contact.failed();
  }
  const lostMs = contact.lostMs(atS * 1000);
  return lostMs === undefined ? undefined : lostMs / 1000;
}

test.each([
  ['ask@1 ok@1 ask@4 fail@7 ask@7 fail@10', 9, undefined, 'silent for less than the bound'],
  ['ask@1 ok@1 ask@4 fail@7 ask@7 fail@10', 10, 9, 'silent for the bound, two requests failed'],
  ['ask@1 ok@1 ask@4 fail@7 ask@7', 10, 9, 'one failed, the next waits for an answer'],
  ['ask@1 ok@1 ask@4 fail@7 ask@9.5', 10, undefined, 'one failed, the next was sent just now'],
  ['ask@1 ok@1', 60, undefined, 'nothing was asked meanwhile: this process stood still'],
  ['ask@1 ok@1 ask@4 fail@60', 60, undefined, 'one request failed late: this process stood still'],
  ['ask@1 ok@1 ask@4 fail@7 ask@7 fail@10 ask@10 ok@11', 12, undefined, 'it answers again'],
  ['ask@0 fail@3 ask@3 fail@6', 12, 12, 'it never answered'],
] as [string, number, number | undefined, string][])('contact: %s, seen at %d s -> %s: %s', (text, atS, wanted, _why) =>
  expect(lost(text, atS)).toBe(wanted),
);
