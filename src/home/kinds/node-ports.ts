// The owners of node ports: one key in the store for each port in use, written in the same commit as the Service that
// holds it, as cluster IPs are. One Service may use a number for several protocols; two Services never share one.

import type { Random } from '../../base/world.ts';
import { type FieldError, invalid } from '../../kube/objects/field-error.ts';
import type { Service, ServicePort } from '../../kube/objects/service.ts';
import type { Admission } from '../model/kind.ts';

const prefix = '/portolan/addresses/node-port/';
const portMin = 30_000;
const portMax = 32_767;
const guessesMax = 8;

/** Gives every port of the Service that needs a node port one of its own. What it no longer has is given back. */
export async function settleNodePorts(admission: Admission, random: Random): Promise<FieldError[]> {
  const service = admission.object as unknown as Service;
  const previous = admission.previous as unknown as Service | undefined;
  if (admission.operation === 'delete') {
    await release(admission, nodePortsOf(previous ?? service));
    return [];
  }
  keepNodePorts(service, previous);
  const before = nodePortsOf(previous);
  const errors = await takeGiven(admission, service, before);
  if (errors.length > 0) return errors;
  if (needsNodePorts(service)) errors.push(...(await takeFree(admission, service, random)));
  const held = new Set(nodePortsOf(service));
  await release(
    admission,
    before.filter((port) => !held.has(port)),
  );
  return errors;
}

/** An update that names no node ports keeps those that the same ports had. */
function keepNodePorts(service: Service, previous: Service | undefined): void {
  if (!hasNodePorts(service) || previous === undefined || !hasNodePorts(previous)) return;
  const ports = service.spec?.ports ?? [];
  const idOf = ({ port, protocol }: ServicePort) => `${port}/${protocol}`;
  const before = new Map((previous.spec?.ports ?? []).map((port) => [idOf(port), port.nodePort]));
  const named = new Set(ports.map(({ nodePort, protocol }) => `${nodePort}/${protocol}`));
  for (const port of ports) {
    const kept = before.get(idOf(port));
    if (port.nodePort === undefined && kept !== undefined && !named.has(`${kept}/${port.protocol}`))
      port.nodePort = kept;
  }
}

async function takeGiven(admission: Admission, service: Service, before: readonly number[]): Promise<FieldError[]> {
  const errors: FieldError[] = [];
  const ports = service.spec?.ports ?? [];
  const taken = new Set<number>();
  for (const [index, { nodePort }] of ports.entries()) {
    if (nodePort === undefined || taken.has(nodePort)) continue;
    taken.add(nodePort);
    const held = await admission.store.get(keyOf(nodePort));
    if (held !== undefined && textOf(held.value) === ownerOf(service)) continue;
    const isNew = !before.includes(nodePort);
    // A Service of an earlier version may have any number: it keeps that, and holds it if nobody else does.
    if (!isNew && (held !== undefined || !isInRange(nodePort))) continue;
    const why = !isInRange(nodePort)
      ? `provided port is not in the valid range. The range of valid ports is ${portMin}-${portMax}`
      : held === undefined
        ? undefined
        : 'provided port is already allocated';
    if (why === undefined) hold(admission, nodePort, ownerOf(service));
    else errors.push(invalid(`spec.ports[${index}].nodePort`, nodePort, why));
  }
  return errors;
}

async function takeFree(admission: Admission, service: Service, random: Random): Promise<FieldError[]> {
  const ports = service.spec?.ports ?? [];
  for (const [index, port] of ports.entries()) {
    if (port.nodePort !== undefined) continue;
    // TCP and UDP of one port number have one node port, as clients of both expect.
    const isLike = (one: ServicePort) => one.port === port.port && one.protocol !== port.protocol;
    const like = ports.find((one) => isLike(one) && one.nodePort !== undefined)?.nodePort;
    const isFree = !ports.some((one) => one.nodePort === like && one.protocol === port.protocol);
    const nodePort = like !== undefined && isFree ? like : await findFree(admission, random);
    if (nodePort === undefined) {
      const why = `failed to allocate a nodePort: every port of ${portMin}-${portMax} is held by a Service`;
      return [invalid(`spec.ports[${index}].nodePort`, 0, why)];
    }
    port.nodePort = nodePort;
    if (nodePort !== like) hold(admission, nodePort, ownerOf(service));
  }
  return [];
}

async function findFree(admission: Admission, random: Random): Promise<number | undefined> {
  const isFree = async (port: number) =>
    !admission.alsoWrite.some(({ key }) => key === keyOf(port)) &&
    (await admission.store.get(keyOf(port))) === undefined;
  const size = portMax - portMin + 1;
  const anyPort = () => portMin + Math.floor(random.float() * size);
  for (let tries = 0; tries < guessesMax; tries += 1) {
    const port = anyPort();
    if (await isFree(port)) return port;
  }
  const first = anyPort();
  for (let step = 0; step < size; step += 1) {
    const port = portMin + ((first - portMin + step) % size);
    if (await isFree(port)) return port;
  }
  return undefined;
}

async function release(admission: Admission, ports: readonly number[]): Promise<void> {
  const owner = ownerOf((admission.previous ?? admission.object) as unknown as Service);
  for (const port of ports) {
    const held = await admission.store.get(keyOf(port));
    if (held === undefined || textOf(held.value) !== owner) continue;
    admission.alsoCompare.push({ key: keyOf(port), revision: held.revision });
    admission.alsoWrite.push({ key: keyOf(port) });
  }
}

function hold(admission: Admission, port: number, owner: string): void {
  admission.alsoCompare.push({ key: keyOf(port), revision: 0 });
  admission.alsoWrite.push({ key: keyOf(port), value: Buffer.from(owner) });
}

function hasNodePorts({ spec }: Service): boolean {
  return spec?.type === 'NodePort' || spec?.type === 'LoadBalancer';
}

function needsNodePorts({ spec }: Service): boolean {
  return spec?.type === 'NodePort' || (spec?.type === 'LoadBalancer' && spec.allocateLoadBalancerNodePorts !== false);
}

function nodePortsOf(service: Service | undefined): number[] {
  const ports = (service?.spec?.ports ?? []).map(({ nodePort }) => nodePort);
  return [...new Set(ports.filter((port) => port !== undefined))];
}

function isInRange(port: number): boolean {
  return port >= portMin && port <= portMax;
}

function keyOf(port: number): string {
  return `${prefix}${port}`;
}

function ownerOf({ metadata }: Service): string {
  return `${metadata.namespace}/${metadata.name}`;
}

function textOf(value: Uint8Array): string {
  return Buffer.from(value).toString('utf8');
}
