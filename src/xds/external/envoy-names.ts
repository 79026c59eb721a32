// Shared by the generators: types of Envoy's extensions, names of our own shared resources, the cause of one. Pure.

import type { JsonObject } from '../../base/json.ts';
import type { Target } from '../../external/rules/target.ts';
import type { Cause } from '../resource.ts';

export function extension(path: string): string {
  return `type.googleapis.com/envoy.extensions.${path}`;
}

/** Where dynamic resources come from: the stream they were announced on. */
export const fromAds: JsonObject = { ads: {}, resource_api_version: 'V3' };

/** Leads to where the client wanted to go. */
export const passthroughName = 'passthrough';
/** Ends connections that lead nowhere, and those made to the proxy itself, which would go round in circles. */
export const blackholeName = 'blackhole';
/** Says on the way from a chain to a route under which rule the connection fell. Never leaves the proxy. */
export const ruleHeader = 'x-portolan-rule';
/** Keeps what the client sent while Envoy writes its own value. */
export const sentProtoHeader = 'x-portolan-forwarded-proto';

export function causeOf({ object }: Target): Cause {
  return { at: 'home', ...object };
}
