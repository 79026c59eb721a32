// The broker of the benchmark: `portolan api` as a process of its own over TLS, with a clusterset of many members, and what
// can be measured of it from outside.

import type { HttpAccess } from '../../src/base/http.ts';
import { createRealHost } from '../../src/base/real/host.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import { brokerInit } from '../../src/cli/clusterset/broker-init.ts';
import { memberNamespaceObject, memberObjects } from '../../src/clusterset/membership/broker-objects.ts';
import { membersNamespace } from '../../src/clusterset/rules/broker-layout.ts';
import { requestToken } from '../../src/kube/client/account-token.ts';
import { install } from '../../src/kube/client/apply.ts';
import { type Client, createClient } from '../../src/kube/client/client.ts';
import { findHome } from '../../src/kube/client/kubeconfig.ts';
import { type ApiProcess, startApi } from '../../test/support/api-process.ts';

export const world = createRealWorld();
export const host = createRealHost();
export const clusterset = 'prod';

export interface Broker {
  process: ApiProcess;
  readonly access: HttpAccess;
  readonly client: Client;
  readonly data: string;
}

export async function startBroker(data: string): Promise<Broker> {
  const process = await startApi({ data });
  const access = await findHome({ host, clock: world.clock, kubeconfig: process.kubeconfig });
  const client = createClient(world.network.http(access), { world, userAgent: 'bench' });
  await brokerInit({ client, deps: { host, world }, clusterset, spec: {} });
  return { process, access, client, data };
}

/** The tokens of new members, by id. */
export async function addMembers({ client }: Broker, ids: readonly string[]): Promise<Record<string, string>> {
  const tokens: Record<string, string> = {};
  for (const id of ids) {
    const request = { clusterset, id, spec: {} };
    await install(client, memberNamespaceObject(request));
    for (const object of memberObjects(request)) await install(client, object);
    const account = { namespace: membersNamespace(clusterset), name: id };
    tokens[id] = (await requestToken(client, { ...account, lifetimeMs: 24 * 3_600_000 })).token;
  }
  return tokens;
}

export async function restart(broker: Broker): Promise<void> {
  await broker.process.stop('SIGKILL');
  broker.process = await startApi({ data: broker.data, port: broker.process.port });
}

/** The value of a metric without labels. */
export async function metricOf({ access }: Pick<Broker, 'access'>, name: string): Promise<number> {
  const transport = world.network.http(access);
  const { body } = await transport.send({ method: 'GET', path: '/metrics', headers: {} });
  const chunks: Uint8Array[] = [];
  if (body instanceof Uint8Array) chunks.push(body);
  else for await (const chunk of body) chunks.push(chunk);
  transport.close();
  const text = Buffer.concat(chunks).toString();
  return Number(new RegExp(`^\\S*${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => world.timers.after(ms, resolve));
}
