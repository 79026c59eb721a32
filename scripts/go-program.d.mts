export function findGoProgram(program: {
  readonly name: string;
  readonly module: string;
  readonly version: string;
}): { readonly path: string; readonly why?: undefined } | { readonly path?: undefined; readonly why: string };
