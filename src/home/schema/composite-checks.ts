// allOf, anyOf, oneOf and not. Branches are tried without reporting; of a failed choice, the nearest branch explains.

import { type FieldError, invalid } from '../../kube/objects/field-error.ts';
import type { Schema } from './schema.ts';
import { type Check, type Compile, charge, pathOf, report, type Walk } from './walk.ts';

export function compositeChecks(schema: Schema, compile: Compile): Check[] {
  const checks = [
    allOfCheck(schema, compile),
    anyOfCheck(schema, compile),
    oneOfCheck(schema, compile),
    notCheck(schema, compile),
  ];
  return checks.filter((check) => check !== undefined);
}

/** Cost of trying a branch, besides its patterns. */
const branchCost = 20;

function attempt(check: Check, value: unknown, walk: Walk): FieldError[] {
  charge(walk, branchCost);
  const outer = walk.errors;
  walk.errors = [];
  check(value, walk);
  const found = walk.errors;
  walk.errors = outer;
  return found;
}

function allOfCheck({ allOf }: Schema, compile: Compile): Check | undefined {
  const branches = allOf?.map(compile);
  return branches && ((value, walk) => branches.forEach((branch) => void branch(value, walk)));
}

function anyOfCheck({ anyOf }: Schema, compile: Compile): Check | undefined {
  const branches = anyOf?.map(compile);
  return (
    branches &&
    ((value, walk) => {
      const failures: FieldError[][] = [];
      for (const branch of branches) {
        const found = attempt(branch, value, walk);
        if (found.length === 0) return;
        failures.push(found);
      }
      refuse(walk, 'must validate at least one schema (anyOf)', failures);
    })
  );
}

function oneOfCheck({ oneOf }: Schema, compile: Compile): Check | undefined {
  const branches = oneOf?.map(compile);
  return (
    branches &&
    ((value, walk) => {
      const failures = branches.map((branch) => attempt(branch, value, walk)).filter((found) => found.length > 0);
      const validCount = branches.length - failures.length;
      if (validCount === 1) return;
      const found = validCount === 0 ? 'Found none valid' : `Found ${validCount} valid alternatives`;
      refuse(walk, `must validate one and only one schema (oneOf). ${found}`, validCount === 0 ? failures : []);
    })
  );
}

function notCheck({ not }: Schema, compile: Compile): Check | undefined {
  const branch = not && compile(not);
  return (
    branch &&
    ((value, walk) => {
      if (attempt(branch, value, walk).length === 0) refuse(walk, 'must not validate the schema (not)', []);
    })
  );
}

function refuse(walk: Walk, words: string, failures: FieldError[][]): void {
  const path = pathOf(walk);
  report(walk, invalid(path, '', `${JSON.stringify(path)} ${words}`));
  const nearest = failures.reduce<FieldError[]>(
    (best, found) => (best.length === 0 || found.length < best.length ? found : best),
    [],
  );
  for (const error of nearest) report(walk, error);
}
