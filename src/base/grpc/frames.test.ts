import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FrameReader, frameOf } from './frames.ts';

test('frames: messages cut into chunks anywhere -> the same messages', () => {
  const messages = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 20 });
  fc.assert(
    fc.property(messages, fc.array(fc.integer({ min: 1, max: 64 }), { minLength: 1 }), (sent, cuts) => {
      const bytes = Buffer.concat(sent.map(frameOf));
      const reader = new FrameReader({ messageBytesMax: 1000 });
      const received: Buffer[] = [];
      for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
        const size = cuts[turn % cuts.length] as number;
        received.push(...reader.read(bytes.subarray(at, at + size)).map((message) => Buffer.from(message)));
        at += size;
      }
      expect(received).toEqual(sent.map((message) => Buffer.from(message)));
    }),
  );
});

test('frames: a message larger than allowed -> refused before it is read', () => {
  const header = Buffer.from([0, 0, 0, 0x10, 0]);
  expect(() => new FrameReader({ messageBytesMax: 100 }).read(header)).toThrow(
    'a message of 4096 bytes is larger than the 100 allowed',
  );
});

test('frames: a compressed message -> refused', () => {
  expect(() => new FrameReader({ messageBytesMax: 100 }).read(Buffer.from([1, 0, 0, 0, 0]))).toThrow('compressed');
});

function compressed(message: Uint8Array): Buffer {
  const frame = frameOf(gzipSync(message));
  frame[0] = 1;
  return frame;
}

test('frames: gzip was agreed -> messages with and without it, in any chunks', () => {
  const bytes = Buffer.concat([
    compressed(Buffer.from('one')),
    frameOf(Buffer.from('two')),
    compressed(Buffer.alloc(0)),
  ]);
  for (const size of [1, 7, bytes.length]) {
    const reader = new FrameReader({ messageBytesMax: 100, isGzip: () => true });
    const received: string[] = [];
    for (let at = 0; at < bytes.length; at += size)
      received.push(...reader.read(bytes.subarray(at, at + size)).map(String));
    expect(received).toEqual(['one', 'two', '']);
  }
});

test('frames: a compressed message that unpacks to more than allowed, or that is none -> refused, without the memory', () => {
  const reader = () => new FrameReader({ messageBytesMax: 100_000, isGzip: () => true });
  expect(() => reader().read(compressed(Buffer.alloc(50_000_000)))).toThrow('larger than the 100000 bytes allowed');
  const broken = frameOf(Buffer.from('nonsense'));
  broken[0] = 1;
  expect(() => reader().read(broken)).toThrow('cannot be unpacked');
});

test('frames: a large message in many small chunks -> copied once, not once per chunk', () => {
  const reader = new FrameReader({ messageBytesMax: 10_000_000 });
  const frame = frameOf(new Uint8Array(4_000_000));
  let messages: Buffer[] = [];
  for (let at = 0; at < frame.length; at += 100) messages = messages.concat(reader.read(frame.subarray(at, at + 100)));
  expect(messages.map((message) => message.length)).toEqual([4_000_000]);
});

test('frames: a message that is too large among others, cut anywhere -> skipped, its beginning handed over', () => {
  const small = Buffer.from('small');
  const large = Buffer.alloc(9000, 'x');
  const bytes = Buffer.concat([frameOf(small), frameOf(large), frameOf(small)]);
  for (const size of [1, 7, 4096, bytes.length]) {
    const oversized: string[] = [];
    const reader = new FrameReader({
      messageBytesMax: 100,
      onOversized: ({ length, beginning }) => oversized.push(`${length} ${beginning.length} ${beginning[0]}`),
    });
    const received: string[] = [];
    for (let at = 0; at < bytes.length; at += size) {
      received.push(...reader.read(bytes.subarray(at, at + size)).map(String));
    }
    expect(received).toEqual(['small', 'small']);
    expect(oversized).toEqual([`9000 4096 ${'x'.charCodeAt(0)}`]);
  }
});

test('frames: a message too large even to skip -> refused', () => {
  const header = Buffer.from([0, 0x7f, 0xff, 0xff, 0xff]);
  expect(() => new FrameReader({ messageBytesMax: 100, onOversized: () => {} }).read(header)).toThrow('larger than');
});
