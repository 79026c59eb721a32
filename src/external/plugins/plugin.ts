// The public interface of extension plugins: a type, the fields of its configuration, and the Envoy resources it makes.
// A plugin is pure: the same request gives the same result. docs/guides/plugins.md shows how to write one.

import { isObject, type JsonObject } from '../../base/json.ts';
import { errorText } from '../../base/log.ts';
import type { Protocol } from '../kinds/mesh-external-service.ts';

export interface ExtensionPlugin {
  /** As `destination.extension.type` names it. */
  readonly type: string;
  /** Matches of other protocols are refused. */
  readonly protocols: readonly Protocol[];
  /** The fields of `destination.extension.config`; others are refused. `any`: any JSON, a list included. */
  readonly config: Readonly<Record<string, ConfigField>> | 'any';
  /** Problems that the table of fields cannot express, one text each. */
  check?(config: unknown): readonly string[];
  /**
   * An HTTP filter of Envoy that the plugin needs: its configuration as long as no route uses it. It lies disabled in all
   * HTTP chains, so that a new rule changes no chain; `perRoute` of a destination enables it.
   */
  readonly httpFilter?: JsonObject;
  /** For a valid configuration. */
  emit(request: PluginRequest): PluginResult;
}

interface ConfigField {
  /** `any`: any JSON. */
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'list' | 'object' | 'any';
  readonly isRequired?: boolean;
  /** Pattern for the whole text. */
  readonly pattern?: RegExp;
  readonly description: string;
}

export interface PluginRequest {
  /** Any JSON; a map if the plugin has a table of fields. */
  readonly config: unknown;
  /** The name that the cluster will have. */
  readonly name: string;
  readonly port: number;
  readonly protocol: Protocol;
}

export interface PluginResult {
  /** An Envoy cluster without its name. */
  readonly cluster: JsonObject;
  /** Fields of the route's action, such as `host_rewrite_literal`. */
  readonly routeAction?: JsonObject;
  /** Per-route configuration of `httpFilter`. */
  readonly perRoute?: JsonObject;
}

/** By type. */
export type Plugins = ReadonlyMap<string, ExtensionPlugin>;

/** Problems of a use of a plugin, each with its field. */
export function pluginProblems(plugin: ExtensionPlugin, config: unknown, protocols: readonly Protocol[]): string[] {
  const problems = plugin.config === 'any' ? [] : fieldProblems(plugin.type, plugin.config, config);
  if (problems.length === 0) problems.push(...ownProblems(plugin, config));
  const foreign = protocols.filter((protocol) => !plugin.protocols.includes(protocol));
  for (const protocol of new Set(foreign))
    problems.push(`extension.type: ${plugin.type} does not support protocol ${protocol}`);
  return problems;
}

function fieldProblems(type: string, fields: Readonly<Record<string, ConfigField>>, config: unknown): string[] {
  if (!isObject(config)) return [`extension.config: must be a map for ${type}`];
  const problems = Object.keys(config)
    .filter((name) => !Object.hasOwn(fields, name))
    .map((name) => `extension.config.${name}: unknown field of ${type}`);
  for (const [name, field] of Object.entries(fields)) {
    const value = config[name];
    if (value === undefined || value === null) {
      if (field.isRequired) problems.push(`extension.config.${name}: required`);
    } else if (!hasType(value, field.type)) problems.push(`extension.config.${name}: must be of type ${field.type}`);
    else if (typeof value === 'string' && field.pattern !== undefined && !matches(field.pattern, value))
      problems.push(`extension.config.${name}: must match ${field.pattern.source}`);
  }
  return problems;
}

const ownProblemsMax = 20;

// A plugin is somebody else's code: its failure concerns the resource that uses it, and no other.
function ownProblems(plugin: ExtensionPlugin, config: unknown): string[] {
  try {
    const problems = plugin.check?.(config) ?? [];
    return problems.slice(0, ownProblemsMax).map((text) => `extension.config: ${String(text).slice(0, 300)}`);
  } catch (error) {
    return [`extension.config: ${plugin.type} could not check it: ${errorText(error).slice(0, 300)}`];
  }
}

const textLengthMax = 65_536;

function matches(pattern: RegExp, text: string): boolean {
  return text.length <= textLengthMax && pattern.test(text);
}

function hasType(value: unknown, type: ConfigField['type']): boolean {
  if (type === 'any') return true;
  if (type === 'list') return Array.isArray(value);
  if (type === 'object') return isObject(value);
  return type === 'integer' ? Number.isInteger(value) : typeof value === type;
}
