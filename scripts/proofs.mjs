// Which test proves which rule of docs/seeds.md. A test names the rules it proves in its title: `… [003-17]`.

const ruleId = /\b\d{3}-\d{2,}\b/g;

/** The rules of docs/seeds.md: every id in order, and those that need no test because they are decided or open. */
export function readRules(text) {
  const rules = { all: [], decided: new Set(), open: new Set() };
  let part = '';
  for (const line of text.split('\n')) {
    if (/^##+ /.test(line)) part = line.replace(/^#+ /, '');
    const [, id, rule] = /^\| (\d{3}-\d{2,}) \| (.*) \|$/.exec(line) ?? [];
    if (id === undefined) continue;
    if (part === 'Open rules') rules.open.add(id);
    else rules.all.push({ id, rule });
    if (part === 'Decided otherwise') rules.decided.add(id);
  }
  return rules;
}

/** The ids in the square brackets of a test's title. */
export function idsIn(title) {
  return [...title.matchAll(/\[(\d{3}-\d{2,}(?:, \d{3}-\d{2,})*)\]/g)].flatMap((match) => match[1].match(ruleId) ?? []);
}

/** The tests of each rule, and what is wrong: ids that do not exist, rules without a test, rules that are no longer open. */
export function proofsOf(rules, titles) {
  const tests = new Map(rules.all.map(({ id }) => [id, []]));
  const problems = [];
  for (const title of titles) {
    for (const id of idsIn(title)) {
      if (tests.has(id)) tests.get(id).push(title);
      else problems.push(`${id} is no rule of docs/seeds.md: ${title}`);
    }
  }
  for (const id of rules.open) if (!tests.has(id)) problems.push(`open rule ${id} is no rule of docs/seeds.md`);
  for (const [id, titlesOfRule] of tests) {
    const isExempt = rules.open.has(id) || rules.decided.has(id);
    if (titlesOfRule.length === 0 && !isExempt) problems.push(`rule ${id} of docs/seeds.md has no test that passed`);
    if (titlesOfRule.length > 0 && rules.open.has(id))
      problems.push(`rule ${id} has a test: take it off the open rules`);
  }
  return { tests, problems };
}

export function formatProofs(rules, tests) {
  const rows = rules.all.map(({ id, rule }) => {
    const state = rules.open.has(id) ? 'open' : rules.decided.has(id) ? 'decided otherwise' : '';
    return `| ${id} | ${rule.split(' | ')[1] ?? rule} | ${tests.get(id).join('<br>') || state} |`;
  });
  return `# Rules and the tests that prove them\n\n| id | rule | tests |\n| --- | --- | --- |\n${rows.join('\n')}\n`;
}
