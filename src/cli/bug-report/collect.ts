// Reads one cluster for a bug report: the kept fields of our kinds, and what the home and its parts say of
// themselves. Unreadable objects are listed, and stop nothing else.

import type { Client } from '../../kube/client/client.ts';
import { PartAdmin } from '../../kube/client/part-admin.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import type { KubernetesEvent } from '../../kube/objects/event.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { partAnnotations, partLabel } from '../../kube/objects/part-lease.ts';
import { describeError } from '../exit-codes.ts';
import { keepFields } from './keep-fields.ts';
import { isKeptMark, type KeptKind, keptKinds, keptMetadata } from './kept-fields.ts';
import type { ArchiveFile } from './tar.ts';

const objectsMax = 5_000;
const textMax = 4 << 20;
const partMsMax = 8_000;

export async function collectCluster(client: Client, folder: string): Promise<ArchiveFile[]> {
  const unread: string[] = [];
  const tryTo = async (what: string, read: () => Promise<string>): Promise<ArchiveFile[]> => {
    try {
      return [{ path: `${folder}/${what}`, text: (await read()).slice(0, textMax) }];
    } catch (error) {
      if (!isNotFound(error)) unread.push(`${what}: ${describeError(error)}`);
      return [];
    }
  };
  const files: ArchiveFile[] = [];
  const admin = new PartAdmin(client);
  for (const path of ['/version', '/readyz?verbose', '/metrics'])
    files.push(...(await tryTo(`home${path.replace(/\?.*/, '')}.txt`, () => textAt(client, path))));
  for (const kind of keptKinds)
    files.push(...(await tryTo(`objects/${kind.type.plural}.json`, () => objectsOf(client, kind))));
  for (const lease of await partsOf(client, unread))
    for (const path of ['/readyz', '/status', '/metrics'])
      files.push(
        ...(await tryTo(`parts/${lease.metadata.name}${path}.txt`, () =>
          admin.askText(lease, path, { timeoutMs: partMsMax }),
        )),
      );
  if (unread.length > 0) files.push({ path: `${folder}/unread.txt`, text: `${unread.join('\n')}\n` });
  return files;
}

async function partsOf(client: Client, unread: string[]): Promise<Lease[]> {
  try {
    const { items } = await client.list<Lease>(leaseType, { namespace: systemNamespace, labelSelector: partLabel });
    return items.filter(({ metadata }) => metadata.annotations?.[partAnnotations.admin] !== undefined);
  } catch (error) {
    unread.push(`leases of parts: ${describeError(error)}`);
    return [];
  }
}

function textAt(client: Client, path: string): Promise<string> {
  return client.getPath(path, { decode: (body) => Buffer.from(body).toString('utf8') });
}

async function objectsOf(client: Client, kind: KeptKind): Promise<string> {
  const kept: unknown[] = [];
  let left = 0;
  for await (const { items } of client.listPaged<AnyObject>(kind.type)) {
    for (const object of items.filter(isAboutUs)) {
      if (kept.length < objectsMax) kept.push(keptOf(object, kind.fields));
      else left += 1;
    }
    if (left > 0) break;
  }
  return `${JSON.stringify({ kind: kind.type.kind, items: kept, isWhole: left === 0 }, null, 1)}\n`;
}

/** Events of others may say anything. */
function isAboutUs(object: AnyObject): boolean {
  if (object.kind !== 'Event') return true;
  const { source, reportingComponent } = object as unknown as KubernetesEvent;
  return (source?.component ?? reportingComponent ?? '').startsWith('portolan');
}

function keptOf(object: AnyObject, fields: readonly string[]): unknown {
  const kept = keepFields(object, [...keptMetadata, ...fields]) as { metadata?: Record<string, unknown> };
  const marks = (place: 'labels' | 'annotations') => {
    const all = Object.entries(object.metadata[place] ?? {});
    const ours = all.filter(([key]) => isKeptMark(place, key));
    const left = all.length - ours.length;
    return { ...Object.fromEntries(ours), ...(left === 0 ? {} : { [`(${left} left out)`]: '' }) };
  };
  return { ...kept, metadata: { ...kept.metadata, labels: marks('labels'), annotations: marks('annotations') } };
}
