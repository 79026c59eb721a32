// The Secret with the keys of a cluster for sealed exports, in its own home: its pair of keys, the fingerprints it has seen
// of other members, and until when keys of audiences are to be replaced. Pure.

import { type KeyPair, publicKeyBytes } from '../../base/keys/hpke.ts';
import { type Manifest, manifest } from '../../kube/objects/manifest.ts';
import { sealingNamespace } from '../../kube/objects/ours.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import { sealingSecretName } from './membership.ts';

const privateKey = 'private-key';
const publicKey = 'public-key';
const rotateBefore = 'rotate-before';
const pinPrefix = 'pin.';

export interface SealingState {
  readonly keys: KeyPair;
  /** Fingerprints of other members' keys as this cluster first saw them, by cluster. */
  readonly pins: ReadonlyMap<string, string>;
  /** Second since 1970: keys of audiences made before it are to be replaced. */
  readonly rotateBefore: number;
}

export function sealingSecret(keys: KeyPair): Manifest<Secret> {
  const data = { [privateKey]: base64(keys.privateKey), [publicKey]: base64(keys.publicKey) };
  const body = { type: 'portolan.dev/sealing', data };
  return manifest(secretType, { name: sealingSecretName, namespace: sealingNamespace }, body) as Manifest<Secret>;
}

/** Undefined if it holds no keys. */
export function readSealingSecret({ data }: Secret): SealingState | undefined {
  const [secret, shown] = [data?.[privateKey], data?.[publicKey]].map((text) => Buffer.from(text ?? '', 'base64'));
  if (secret?.length !== publicKeyBytes || shown?.length !== publicKeyBytes) return undefined;
  const entries = Object.entries(data ?? {}).filter(([key]) => key.startsWith(pinPrefix));
  const pins = new Map(entries.map(([key, text]) => [key.slice(pinPrefix.length), plain(text)]));
  const since = Number(plain(data?.[rotateBefore] ?? ''));
  return {
    keys: { privateKey: secret, publicKey: shown },
    pins,
    rotateBefore: Number.isSafeInteger(since) ? since : 0,
  };
}

/** For a merge patch. */
export function pinsData(pins: ReadonlyMap<string, string>): Record<string, string> {
  return Object.fromEntries([...pins].map(([cluster, fingerprint]) => [`${pinPrefix}${cluster}`, base64(fingerprint)]));
}

/** For a merge patch. */
export function rotationData(beforeSeconds: number): Record<string, string> {
  return { [rotateBefore]: base64(String(beforeSeconds)) };
}

function base64(content: Uint8Array | string): string {
  return Buffer.from(content as string).toString('base64');
}

function plain(text: string): string {
  return Buffer.from(text, 'base64').toString('utf8');
}
