// HPKE with X25519, HKDF-SHA256 and AES-256-GCM. Keys, those of single messages too, are derived from what the World gives,
// so that a simulation repeats.

import { Aes256Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from '@hpke/core';
import { type Hpke, type KeyPair, publicKeyBytes } from '../keys/hpke.ts';
import type { Random } from '../world.ts';

const seedBytes = 32;

export function createHpke(random: Pick<Random, 'bytes'>): Hpke {
  const kem = new DhkemX25519HkdfSha256();
  const suite = new CipherSuite({ kem, kdf: new HkdfSha256(), aead: new Aes256Gcm() });
  const pairOf = async ({ privateKey, publicKey }: KeyPair) => ({
    privateKey: await kem.deserializePrivateKey(privateKey),
    publicKey: await kem.deserializePublicKey(publicKey),
  });

  return {
    makeKeys: async () => {
      const pair = await kem.deriveKeyPair(random.bytes(seedBytes));
      const [privateKey, publicKey] = [
        await kem.serializePrivateKey(pair.privateKey),
        await kem.serializePublicKey(pair.publicKey),
      ];
      return { privateKey: new Uint8Array(privateKey), publicKey: new Uint8Array(publicKey) };
    },
    seal: async ({ sender, recipient, info, plain }) => {
      const context = await suite.createSenderContext({
        senderKey: await pairOf(sender),
        recipientPublicKey: await kem.deserializePublicKey(recipient),
        info,
        ekm: random.bytes(seedBytes),
      });
      return Buffer.concat([new Uint8Array(context.enc), new Uint8Array(await context.seal(plain))]);
    },
    open: async ({ sender, recipient, info, sealed }) => {
      try {
        const context = await suite.createRecipientContext({
          recipientKey: await pairOf(recipient),
          senderPublicKey: await kem.deserializePublicKey(sender),
          enc: sealed.subarray(0, publicKeyBytes),
          info,
        });
        return new Uint8Array(await context.open(sealed.subarray(publicKeyBytes)));
      } catch {
        // Which of its checks failed is of no use to anybody but an attacker.
        return undefined;
      }
    },
  };
}
