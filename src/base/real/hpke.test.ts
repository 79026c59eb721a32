import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createHpke } from './hpke.ts';

const random = { bytes: (count: number) => new Uint8Array(randomBytes(count)), float: () => 0, uuid: randomUUID };
const info = Buffer.from('for this place');
const plain = Buffer.from('a content key');

describe('hpke', () => {
  const hpke = createHpke(random);

  test('sealed for one reader -> opens for that reader, from that sender, with that info alone', async () => {
    const [sender, recipient, other] = [await hpke.makeKeys(), await hpke.makeKeys(), await hpke.makeKeys()];
    const sealed = await hpke.seal({ sender, recipient: recipient.publicKey, info, plain });
    const request = { sender: sender.publicKey, recipient, info, sealed };
    expect(await hpke.open(request).then((bytes) => bytes && Buffer.from(bytes).toString())).toBe('a content key');
    expect(await hpke.open({ ...request, recipient: other })).toBeUndefined();
    expect(await hpke.open({ ...request, sender: other.publicKey })).toBeUndefined();
    expect(await hpke.open({ ...request, info: Buffer.from('another place') })).toBeUndefined();
    for (const length of [0, 1, 31, 32, 33, sealed.length - 1])
      expect(await hpke.open({ ...request, sealed: sealed.subarray(0, length) })).toBeUndefined();
    for (let index = 0; index < sealed.length; index += 7) {
      const changed = Uint8Array.from(sealed);
      changed[index]! ^= 1;
      expect(await hpke.open({ ...request, sealed: changed }), `byte ${index}`).toBeUndefined();
    }
  });

  test.each([new Uint8Array(0), new Uint8Array(31), new Uint8Array(32), new Uint8Array(33)])(
    'a key that is no key -> nothing is sealed for it',
    async (recipient) => {
      const sender = await hpke.makeKeys();
      await expect(hpke.seal({ sender, recipient, info, plain })).rejects.toThrow();
    },
  );

  test('the same random bytes -> the same keys, so that a simulation repeats', async () => {
    const zero = createHpke({ bytes: (count) => new Uint8Array(count).fill(7) });
    expect(await zero.makeKeys()).toEqual(await zero.makeKeys());
    expect(await hpke.makeKeys()).not.toEqual(await hpke.makeKeys());
  });
});
