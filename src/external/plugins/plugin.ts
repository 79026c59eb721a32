// The public interface of extension plugins: a type, the fields of its configuration, and the Envoy resources it makes.
// A plugin is pure: the same request gives the same result. docs/guides/plugins.md shows how to write one.

import type { JsonObject } from '../../base/json.ts';
import type { Protocol } from '../kinds/mesh-external-service.ts';

export interface ExtensionPlugin {
  /** As `destination.extension.type` names it. */
  readonly type: string;
  /** Matches of other protocols are refused. */
  readonly protocols: readonly Protocol[];
  /** The fields of `destination.extension.config`; others are refused. */
  readonly config: Readonly<Record<string, ConfigField>>;
  /**
   * An HTTP filter of Envoy that the plugin needs: its configuration as long as no route uses it. It lies disabled in all
   * HTTP chains, so that a new rule changes no chain; `perRoute` of a destination enables it.
   */
  readonly httpFilter?: JsonObject;
  /** For a valid configuration. */
  emit(request: PluginRequest): PluginResult;
}

interface ConfigField {
  readonly type: 'string' | 'integer' | 'boolean';
  readonly isRequired?: boolean;
  /** Pattern for the whole text. */
  readonly pattern?: RegExp;
  readonly description: string;
}

export interface PluginRequest {
  readonly config: JsonObject;
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
export function pluginProblems(plugin: ExtensionPlugin, config: JsonObject, protocols: readonly Protocol[]): string[] {
  const problems = Object.keys(config)
    .filter((name) => !Object.hasOwn(plugin.config, name))
    .map((name) => `extension.config.${name}: unknown field of ${plugin.type}`);
  for (const [name, field] of Object.entries(plugin.config)) {
    const value = config[name];
    if (value === undefined || value === null) {
      if (field.isRequired) problems.push(`extension.config.${name}: required`);
    } else if (!hasType(value, field.type)) problems.push(`extension.config.${name}: must be of type ${field.type}`);
    else if (typeof value === 'string' && field.pattern !== undefined && !matches(field.pattern, value))
      problems.push(`extension.config.${name}: must match ${field.pattern.source}`);
  }
  const foreign = protocols.filter((protocol) => !plugin.protocols.includes(protocol));
  for (const protocol of new Set(foreign))
    problems.push(`extension.type: ${plugin.type} does not support protocol ${protocol}`);
  return problems;
}

const textLengthMax = 65_536;

function matches(pattern: RegExp, text: string): boolean {
  return text.length <= textLengthMax && pattern.test(text);
}

function hasType(value: unknown, type: ConfigField['type']): boolean {
  return type === 'integer' ? Number.isInteger(value) : typeof value === type;
}
