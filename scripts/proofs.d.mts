export interface Rules {
  readonly all: readonly { readonly id: string; readonly rule: string }[];
  readonly decided: ReadonlySet<string>;
  readonly open: ReadonlySet<string>;
}

export function readRules(text: string): Rules;
export function idsIn(title: string): string[];
export function proofsOf(
  rules: Rules,
  titles: readonly string[],
): { readonly tests: ReadonlyMap<string, readonly string[]>; readonly problems: readonly string[] };
export function formatProofs(rules: Rules, tests: ReadonlyMap<string, readonly string[]>): string;
