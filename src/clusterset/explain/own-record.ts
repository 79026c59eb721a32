// The record of one service of this cluster as it lies at the broker, in the open or sealed. A cluster that can seal does
// not name the service to the broker: its audit log would tell what a sealed export hides.

import type { Hpke } from '../../base/keys/hpke.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { sealingNamespace } from '../../kube/objects/ours.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { type SealedRecord, sealedRecordType } from '../kinds/sealed-record.ts';
import { type ServiceShard, serviceShardType } from '../kinds/service-shard.ts';
import { type MembershipRecord, sealingSecretName } from '../membership/membership.ts';
import { readSealingSecret, type SealingState } from '../membership/sealing-secret.ts';
import { recordName, type ServiceKey } from '../rules/names.ts';
import { keyInfo } from '../rules/sealing/key-record.ts';
import { nameSecretOf, sealedName } from '../rules/sealing/opaque-names.ts';
import { openRecord } from '../rules/sealing/sealed-content.ts';
import { listAll } from './set-state.ts';

export interface OwnRecordRequest {
  readonly home: Client;
  readonly broker: Client;
  readonly membership: MembershipRecord;
  readonly hpke: Hpke;
  readonly service: ServiceKey;
}

export interface OwnRecord {
  /** Undefined if it is sealed, and not with the keys that this cluster has. */
  readonly isDraining: boolean | undefined;
}

/** Undefined if there is none. */
export async function readOwnRecord(request: OwnRecordRequest): Promise<OwnRecord | undefined> {
  const { home, broker, membership, service } = request;
  const { namespace } = membership;
  const name = recordName(service);
  const place = { namespace: sealingNamespace, name: sealingSecretName };
  const secret = await getOrUndefined<Secret>(home, secretType, place);
  const sealing = secret && readSealingSecret(secret);
  const open =
    sealing === undefined
      ? await getOrUndefined<ServiceShard>(broker, serviceShardType, { namespace, name })
      : (await listAll<ServiceShard>(broker, serviceShardType, { namespace })).find(
          (one) => one.metadata.name === name,
        );
  if (open !== undefined) return { isDraining: open.spec.draining === true };
  return sealing && readSealed(request, sealing);
}

async function readSealed(
  { broker, membership, hpke, service }: OwnRecordRequest,
  { keys }: SealingState,
): Promise<OwnRecord | undefined> {
  const { namespace, clusterset, clusterId: exporter } = membership;
  const plain = { kind: serviceShardType.kind, name: recordName(service) };
  const object = sealedName(nameSecretOf(keys.privateKey), plain);
  const record = await getOrUndefined<SealedRecord>(broker, sealedRecordType, { namespace, name: object });
  if (record === undefined) return undefined;
  const { audience, epoch, counter = 0, data = '' } = record.spec;
  const lock = await getOrUndefined<SealedRecord>(broker, sealedRecordType, { namespace, name: audience });
  const own = (lock?.spec.readers ?? []).find(({ cluster }) => cluster === exporter);
  if (lock?.spec.epoch !== epoch || own === undefined) return { isDraining: undefined };
  const info = keyInfo({ clusterset, exporter, audience, epoch, reader: exporter });
  const sealed = Buffer.from(own.key, 'base64');
  const key = await hpke.open({ sender: keys.publicKey, recipient: keys, info, sealed });
  const opened = key && openRecord(data, { clusterset, exporter, object, audience, epoch, counter }, key);
  const isShard = opened?.kind === 'opened' && opened.record.kind === 'ServiceShard';
  return { isDraining: isShard ? (opened.record as ServiceShard).spec.draining === true : undefined };
}
