// HPKE with X25519, HKDF-SHA256 and AES-256-GCM. Keys, those of single messages too, are derived from what the World gives,
// so that a simulation repeats.

import { createPrivateKey, createPublicKey } from 'node:crypto';
import { type Hpke, type KeyPair, publicKeyBytes } from '../keys/hpke.ts';
import type { Random } from '../world.ts';

const seedBytes = 32;
/** PKCS #8 puts this before the 32 bytes of an X25519 private key, RFC 8410. */
const pkcs8Head = Buffer.from('302e020100300506032b656e04220420', 'hex');

export function createHpke(random: Pick<Random, 'bytes'>): Hpke {
  let loaded: ReturnType<typeof load> | undefined;
  const ready = () => (loaded ??= load());

  return {
    makeKeys: async () => {
      const privateKey = random.bytes(seedBytes);
      return { privateKey, publicKey: publicKeyOf(privateKey) };
    },
    seal: async ({ sender, recipient, info, plain }) => {
      const { kem, suite, pairOf } = await ready();
      const context = await suite.createSenderContext({
        senderKey: await pairOf(sender),
        recipientPublicKey: await kem.deserializePublicKey(recipient),
        info,
        ekm: random.bytes(seedBytes),
      });
      return Buffer.concat([new Uint8Array(context.enc), new Uint8Array(await context.seal(plain))]);
    },
    open: async ({ sender, recipient, info, sealed }) => {
      const { kem, suite, pairOf } = await ready();
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

/** Every member has keys and few sets seal: the library, 7 MB of memory, is loaded for the first message. */
async function load() {
  const { Aes256Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } = await import('@hpke/core');
  const kem = new DhkemX25519HkdfSha256();
  const suite = new CipherSuite({ kem, kdf: new HkdfSha256(), aead: new Aes256Gcm() });
  const pairOf = async ({ privateKey, publicKey }: KeyPair) => ({
    privateKey: await kem.deserializePrivateKey(privateKey),
    publicKey: await kem.deserializePublicKey(publicKey),
  });
  return { kem, suite, pairOf };
}

function publicKeyOf(privateKey: Uint8Array): Uint8Array {
  const key = createPrivateKey({ key: Buffer.concat([pkcs8Head, privateKey]), format: 'der', type: 'pkcs8' });
  return new Uint8Array(Buffer.from(createPublicKey(key).export({ format: 'jwk' }).x!, 'base64url'));
}
