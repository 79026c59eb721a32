// The address of a module that lies beside the one that asks, for starting it as a worker: the same name whether the
// program runs from its sources or compiled.

export function siblingModule(importMetaUrl: string, name: string): URL {
  const extension = importMetaUrl.endsWith('.ts') ? 'ts' : 'js';
  return new URL(`./${name}.${extension}`, importMetaUrl);
}
