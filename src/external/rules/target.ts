// Where connections of one resource go, by port and protocol: a target for each, and what stands in the way of one. Pure.

import { isObject } from '../../base/json.ts';
import { errorText } from '../../base/log.ts';
import {
  copyName,
  type ExternalEndpoint,
  type MeshExternalService,
  originOf,
  type Protocol,
  shareSecretsAnnotation,
} from '../kinds/mesh-external-service.ts';
import {
  type ExtensionPlugin,
  type PluginRequest,
  type PluginResult,
  type Plugins,
  pluginProblems,
} from '../plugins/plugin.ts';
import { ownerId, ownerOf, type Rule, type RuleOwner, rulesOf } from './rule.ts';
import { readTls, type SecretReader, type TlsPlan } from './tls-plan.ts';
import { externalServiceErrors } from './validation/external-service.ts';
import { type Place, visibilityIn } from './visibility.ts';

/** Protocol between the proxy and the destination: `bytes` where it does not look inside. */
export type Speech = 'http1' | 'http2' | 'bytes';

export interface Target {
  /** Name of the cluster, or of the group that stands for several. */
  readonly name: string;
  /** Stays the same whatever other matches the resource has. */
  readonly key: string;
  readonly owner: RuleOwner;
  readonly port: number;
  readonly speech: Speech;
  readonly destination: TargetDestination;
  readonly object: ObjectName;
}

/** The object at home that a target comes from. */
interface ObjectName {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

type TargetDestination =
  | { readonly kind: 'passthrough' }
  | { readonly kind: 'endpoints'; readonly endpoints: readonly ExternalEndpoint[]; readonly tls?: TlsPlan }
  | { readonly kind: 'plugin'; readonly type: string; readonly made: PluginResult }
  /** It cannot be used: without TLS or a plugin that the resource asks for, nothing may go out in its place. */
  | { readonly kind: 'closed' };

export interface TargetedRule extends Rule {
  readonly target: Target;
}

export interface TargetContext {
  readonly place: Place;
  readonly plugins: Plugins;
  readonly secrets: SecretReader;
}

export type Targeting =
  | { readonly kind: 'rules'; readonly rules: readonly TargetedRule[] }
  /** Leads nowhere, and why: its rules close what they match. It has none if it does not count at all. */
  | {
      readonly kind: 'none';
      readonly reason: TargetingReason;
      readonly problems: readonly string[];
      readonly rules: readonly TargetedRule[];
    };

type TargetingReason =
  | 'Invalid'
  | 'NotVisible'
  | 'TLSNotReady'
  | 'UnknownPlugin'
  | 'PluginConfigInvalid'
  | 'PluginFailed';

export function targetsOf(object: MeshExternalService, context: TargetContext): Targeting {
  const errors = externalServiceErrors(object);
  if (errors.length > 0)
    return none(
      'Invalid',
      errors.map(({ field, message }) => `${field}: ${message}`),
    );
  const visibility = visibilityIn(context.place, object);
  if (!visibility.isVisible) return none('NotVisible', [visibility.reason]);
  const destination = destinationOf(object, context);
  if ('reason' in destination) return closed(object, destination);
  try {
    return { kind: 'rules', rules: withTargets(object, destination) };
  } catch (error) {
    // A plugin is somebody else's code: what it fails at concerns this resource alone.
    if (!(error instanceof PluginFailure)) throw error;
    return closed(object, { reason: 'PluginFailed', problems: [error.message] });
  }
}

class PluginFailure extends Error {}

interface Obstacle {
  readonly reason: TargetingReason;
  readonly problems: readonly string[];
}

function none(reason: TargetingReason, problems: readonly string[]): Targeting {
  return { kind: 'none', reason, problems, rules: [] };
}

function closed(object: MeshExternalService, obstacle: Obstacle): Targeting {
  return { kind: 'none', ...obstacle, rules: withTargets(object, () => ({ kind: 'closed' })) };
}

/** Rules of a resource that is valid and visible, wherever it leads: enough to know what must reach the proxy. */
export function redirectedRules(object: MeshExternalService, place: Place): readonly TargetedRule[] {
  const isCounting = externalServiceErrors(object).length === 0 && visibilityIn(place, object).isVisible;
  return isCounting ? withTargets(object, () => ({ kind: 'passthrough' })) : [];
}

type DestinationOf = (use: Pick<PluginRequest, 'name' | 'port' | 'protocol'>) => TargetDestination;

function destinationOf(object: MeshExternalService, context: TargetContext): DestinationOf | Obstacle {
  const { type = 'Passthrough', endpoints = [], extension, tls } = object.spec.destination ?? {};
  if (type === 'Passthrough') return () => ({ kind: 'passthrough' });
  if (type === 'Extension') return pluginDestination(object, extension!, context.plugins);
  const reading = readTls(tls, secretsOf(object, context.secrets));
  if (reading.kind === 'broken') return { reason: 'TLSNotReady', problems: reading.problems };
  return () => ({ kind: 'endpoints', endpoints, ...(reading.kind === 'tls' ? { tls: reading.plan } : {}) });
}

/** Secrets that a resource at the broker shares lie beside its copy, under names of their own. */
export function secretsOf(object: MeshExternalService, secrets: SecretReader): SecretReader {
  return sharesSecrets(object) ? (name, key) => secrets(copyName(name), key) : secrets;
}

export function sharesSecrets(object: MeshExternalService): boolean {
  return originOf(object) === 'broker' && object.metadata.annotations?.[shareSecretsAnnotation] === 'true';
}

function pluginDestination(
  { spec }: MeshExternalService,
  extension: { type: string; config?: unknown },
  plugins: Plugins,
): DestinationOf | Obstacle {
  const plugin = plugins.get(extension.type);
  if (plugin === undefined) {
    const known = [...plugins.keys()].sort().join(', ');
    const problem = `extension.type: there is no plugin ${extension.type}; there are ${known}`;
    return { reason: 'UnknownPlugin', problems: [problem] };
  }
  const config = extension.config ?? {};
  const problems = pluginProblems(
    plugin,
    config,
    spec.match.map(({ protocol }) => protocol ?? 'tcp'),
  );
  if (problems.length > 0) return { reason: 'PluginConfigInvalid', problems };
  return (use) => ({ kind: 'plugin', type: plugin.type, made: emitted(plugin, { ...use, config }) });
}

function emitted(plugin: ExtensionPlugin, request: PluginRequest): PluginResult {
  try {
    const made = plugin.emit(request);
    if (isObject(made?.cluster)) return made;
  } catch (cause) {
    throw new PluginFailure(`extension.type: ${plugin.type} failed: ${errorText(cause).slice(0, 300)}`, { cause });
  }
  throw new PluginFailure(`extension.type: ${plugin.type} made no cluster`);
}

function withTargets(object: MeshExternalService, destinationFor: DestinationOf): TargetedRule[] {
  const rules = rulesOf(object);
  const owner = ownerOf(object);
  const { namespace = '', name: ownName } = object.metadata;
  const objectName = { kind: object.kind, namespace, name: ownName };
  const firstSpeech = new Map<number, Speech>();
  for (const { port, protocol } of object.spec.match)
    if (!firstSpeech.has(port)) firstSpeech.set(port, speechOf(protocol ?? 'tcp'));
  const targets = new Map<string, Target>();
  const targetFor = ({ port, protocol }: Rule): Target => {
    const speech = speechOf(protocol);
    // The founding document's name. A policy that speaks two protocols on one port needs two: the first match has the plain
    // one, so that a match added later renames nothing.
    const plain = `${ownerId(owner)}_${port}`;
    const name = firstSpeech.get(port) === speech ? plain : `${plain}_${speech}`;
    const known = targets.get(name);
    if (known !== undefined) return known;
    const target = {
      name,
      key: `${plain}:${speech}`,
      owner,
      port,
      speech,
      destination: destinationFor({ name, port, protocol }),
      object: objectName,
    };
    targets.set(name, target);
    return target;
  };
  return rules.map((rule) => ({ ...rule, target: targetFor(rule) }));
}

function speechOf(protocol: Protocol): Speech {
  if (protocol === 'http') return 'http1';
  return protocol === 'http2' || protocol === 'grpc' ? 'http2' : 'bytes';
}
