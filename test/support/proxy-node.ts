// One process of the proxy's tests, run inside its network namespace with its role as JSON in its argument: the
// broker, or a cluster's home, with its agent and resolver if it joins. It prints one line of JSON when it is ready;
// then each line of standard input is an order, answered by a line.

import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parse, stringify } from 'yaml';
import { silentLog } from '../../src/base/log.ts';
import { createRealHost } from '../../src/base/real/host.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import { brokerInit } from '../../src/cli/clusterset/broker-init.ts';
import { brokerToken } from '../../src/cli/clusterset/broker-token.ts';
import { join } from '../../src/cli/clusterset/join.ts';
import { createAgent } from '../../src/clusterset/agent/agent.ts';
import { requireMembership } from '../../src/clusterset/explain/consult.ts';
import { parseJoinToken } from '../../src/clusterset/membership/join-token.ts';
import { proxyAccountName, proxyObjects } from '../../src/clusterset/membership/proxy-objects.ts';
import { isAdmission } from '../../src/install/admission.ts';
import { isRight, objectsOf } from '../../src/install/objects.ts';
import { defaultValues } from '../../src/install/values.ts';
import { requestToken } from '../../src/kube/client/account-token.ts';
import { install } from '../../src/kube/client/apply.ts';
import { type Client, createClient } from '../../src/kube/client/client.ts';
import { flowTicketAccount, ticketAudience, ticketLifetimeMs } from '../../src/kube/objects/admin-ticket.ts';
import { isAlreadyExists, isNotFound } from '../../src/kube/objects/api-error.ts';
import { type AnyObject, parseApiVersion } from '../../src/kube/objects/object.ts';
import { systemNamespace } from '../../src/kube/objects/ours.ts';
import { startResolver } from '../../src/main/dns/part.ts';
import { startHome } from '../../src/main/home/part.ts';

export interface ProxyNodeTask {
  readonly directory: string;
  readonly address: string;
  /** At the broker: who may join. */
  readonly members?: readonly { readonly id: string; readonly region: string; readonly zone: string }[];
  readonly leaseSeconds?: number;
  /** Accounts of parts that run as processes of their own, such as `portolan-xds`: each gets a kubeconfig. */
  readonly accounts?: readonly string[];
  /** Membership of a cluster. */
  readonly join?: {
    readonly id: string;
    readonly region: string;
    readonly zone: string;
    readonly token: string;
    readonly podRange: string;
    readonly serviceRange: string;
  };
}

export type Order =
  | { readonly put: AnyObject }
  | { readonly patch: AnyObject; readonly subresource?: string }
  | { readonly remove: AnyObject }
  | { readonly get: AnyObject }
  /** A ticket that lets its bearer read the connections that the part at this URL has seen. */
  | { readonly flowTicket: string }
  /** The path of a kubeconfig of an account in portolan-system. */
  | { readonly kubeconfigOf: string };

const clusterset = 'prod';
const world = createRealWorld();
const deps = { world, host: createRealHost(), print: () => {}, setExitCode: () => {} };
const task = JSON.parse(process.argv[2] ?? '{}') as ProxyNodeTask;
const home = await startHome({
  world,
  log: silentLog,
  directory: task.directory,
  listen: { host: task.address, port: 0 },
  ...(task.join ? { serviceRanges: [task.join.serviceRange] } : {}),
});
const client = createClient(home.transport, { world, userAgent: 'test' });
const ready = {
  kubeconfig: home.kubeconfig,
  proxyKubeconfig: await proxyKubeconfig(),
  accounts: await accountKubeconfigs(task.accounts ?? []),
  tokens: task.members ? await beBroker(task) : undefined,
};
if (task.join) await beCluster(client, task.join);
process.stdout.write(`${JSON.stringify(ready)}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  const answer = await obey(JSON.parse(line) as Order).catch((error: Error) => ({ error: error.message }));
  process.stdout.write(`${JSON.stringify(answer ?? null)}\n`);
}
process.exit(0);

/** With the rights of deploy/manifests/proxy.yaml and no more. */
async function proxyKubeconfig(): Promise<string> {
  for (const manifest of proxyObjects()) await install(client, manifest);
  return kubeconfigOf(proxyAccountName);
}

/** With the rights that an installation gives each part, and no more. */
async function accountKubeconfigs(names: readonly string[]): Promise<Record<string, string>> {
  const paths: Record<string, string> = {};
  if (names.length === 0) return paths;
  const values = { ...defaultValues, xds: { ...defaultValues.xds, enabled: true } };
  for (const manifest of objectsOf(values))
    if (isRight(manifest) && !isAdmission(manifest)) await install(client, manifest);
  for (const name of names) paths[name] = await kubeconfigOf(name);
  return paths;
}

async function kubeconfigOf(name: string): Promise<string> {
  const { token } = await requestToken(client, { namespace: systemNamespace, name, lifetimeMs: 3_600_000 });
  const path = `${task.directory}/${name}.kubeconfig`;
  const admin = parse(readFileSync(home.kubeconfig, 'utf8')) as { users: { user: object }[] };
  for (const user of admin.users) user.user = { token };
  writeFileSync(path, stringify(admin));
  return path;
}

async function beBroker({ members = [], leaseSeconds = 30 }: ProxyNodeTask): Promise<Record<string, string>> {
  const lease = { renewSeconds: 1, durationSeconds: leaseSeconds, holdDownSeconds: 1, holdDownMaxSeconds: 2 };
  await brokerInit({ client, deps, clusterset, spec: { lease } });
  const tokens: Record<string, string> = {};
  for (const { id, region, zone } of members) {
    const spec = { region, zone };
    const request = { client, access: home, clusterset, id, spec, lifetimeMs: 600_000, isRenewal: false };
    tokens[id] = await brokerToken(request);
  }
  return tokens;
}

async function beCluster(own: Client, { id, region, zone, token, ...ranges }: NonNullable<ProxyNodeTask['join']>) {
  const claims = { region, zone, podRanges: [ranges.podRange], serviceRanges: [ranges.serviceRange] };
  await join(deps, { home: own, token: parseJoinToken(token), claims, lifetimeMs: 3_600_000 });
  const membership = await requireMembership(own);
  const transport = world.network.http({
    server: membership.server,
    certificateAuthority: membership.certificateAuthority,
    bearerToken: async () => membership.token,
  });
  const broker = createClient(transport, { world, userAgent: `portolan-agent/${id}` });
  createAgent({ world, log: silentLog, home: own, broker, membership }).start();
  const listen = { hosts: [task.address], port: 53 };
  await startResolver({ world, log: silentLog, home: own, cluster: { id, region, zone }, listen });
}

async function obey(order: Order): Promise<unknown> {
  if ('put' in order) return put(order.put);
  if ('patch' in order) {
    const { metadata, apiVersion: _a, kind: _k, ...body } = order.patch;
    const { subresource } = order;
    return client.patch(typeOf(order.patch), metadata, { kind: 'merge', body }, subresource ? { subresource } : {});
  }
  if ('kubeconfigOf' in order) return { path: await kubeconfigOf(order.kubeconfigOf) };
  if ('flowTicket' in order) {
    const audiences = [ticketAudience(order.flowTicket)];
    return requestToken(client, { ...flowTicketAccount, lifetimeMs: ticketLifetimeMs, audiences });
  }
  if ('get' in order) return orNull(client.get(typeOf(order.get), order.get.metadata));
  return orNull(client.delete(typeOf(order.remove), order.remove.metadata));
}

async function put(object: AnyObject): Promise<unknown> {
  const type = typeOf(object);
  try {
    return await client.create(type, object);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const { resourceVersion, uid } = (await client.get(type, object.metadata)).metadata;
    return client.update(type, { ...object, metadata: { ...object.metadata, resourceVersion, uid } });
  }
}

async function orNull(promise: Promise<unknown>): Promise<unknown> {
  return promise.catch((error: unknown) => {
    if (isNotFound(error)) return null;
    throw error;
  });
}

function typeOf({ apiVersion, kind, metadata }: AnyObject) {
  const { group, version } = parseApiVersion(apiVersion ?? 'v1');
  const plural = `${(kind ?? '').toLowerCase()}s`.replace(/sss$/, 'sses').replace(/ys$/, 'ies');
  return { group, version, plural, kind: kind ?? '', isNamespaced: metadata.namespace !== undefined };
}
