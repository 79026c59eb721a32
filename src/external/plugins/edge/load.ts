// Loads plugins from files outside the source tree, beside the built-in ones. A file is a module whose default export is
// the plugin.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { builtinPlugins } from '../builtin.ts';
import type { ExtensionPlugin, Plugins } from '../plugin.ts';

export async function loadPlugins(files: readonly string[]): Promise<Plugins> {
  const plugins = new Map(builtinPlugins);
  for (const file of files) {
    const plugin = await loadPlugin(file);
    if (plugins.has(plugin.type)) throw new Error(`--plugin ${file}: there is already a plugin of type ${plugin.type}`);
    plugins.set(plugin.type, plugin);
  }
  return plugins;
}

async function loadPlugin(file: string): Promise<ExtensionPlugin> {
  let module: { default?: unknown };
  try {
    module = await import(pathToFileURL(resolve(file)).href);
  } catch (error) {
    throw new Error(`--plugin ${file}: cannot be loaded: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
  const missing = missingIn(module.default);
  if (missing !== '') throw new Error(`--plugin ${file}: its default export is not a plugin: ${missing}`);
  return module.default as ExtensionPlugin;
}

function missingIn(value: unknown): string {
  if (typeof value !== 'object' || value === null) return 'not an object';
  const { type, protocols, config, check, emit } = value as Record<string, unknown>;
  if (typeof type !== 'string' || type === '') return 'type must be text';
  if (!Array.isArray(protocols) || protocols.length === 0) return 'protocols must be a list';
  if (config !== 'any' && (typeof config !== 'object' || config === null))
    return "config must describe its fields, or be 'any'";
  if (check !== undefined && typeof check !== 'function') return 'check must be a function';
  return typeof emit === 'function' ? '' : 'emit must be a function';
}
