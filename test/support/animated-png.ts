// Puts pictures of one size together to a moving one, as Animated PNG: each frame is the compressed data of its picture, as it is.

import { crc32 } from 'node:zlib';

export interface Frame {
  /** A PNG without interlacing. */
  readonly png: Buffer;
  readonly shownMs: number;
}

const signature = Buffer.from('89504e470d0a1a0a', 'hex');

export function animatedPng(frames: readonly Frame[]): Buffer {
  const pictures = frames.map(({ png, shownMs }) => ({ chunks: [...chunksOf(png)], shownMs }));
  const [first] = pictures;
  const header = first?.chunks.find(({ type }) => type === 'IHDR')?.data;
  if (header === undefined) throw new Error('animated PNG: there is no first picture');
  let sequence = 0;
  const out = [signature, chunk('IHDR', header), chunk('acTL', numbers(pictures.length, 0))];
  for (const { chunks, shownMs } of pictures) {
    const own = chunks.find(({ type }) => type === 'IHDR')!.data;
    if (!own.equals(header)) throw new Error('animated PNG: the pictures are of different sizes or kinds');
    const times = Buffer.alloc(6);
    times.writeUInt16BE(shownMs, 0);
    times.writeUInt16BE(1000, 2);
    const isFirst = sequence === 0;
    out.push(chunk('fcTL', Buffer.concat([numbers(sequence++), header.subarray(0, 8), numbers(0, 0), times])));
    for (const { type, data } of chunks)
      if (type === 'IDAT')
        out.push(isFirst ? chunk('IDAT', data) : chunk('fdAT', Buffer.concat([numbers(sequence++), data])));
  }
  return Buffer.concat([...out, chunk('IEND', Buffer.alloc(0))]);
}

function* chunksOf(png: Buffer): Generator<{ readonly type: string; readonly data: Buffer }> {
  if (!png.subarray(0, 8).equals(signature)) throw new Error('animated PNG: this is no PNG');
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    yield { type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) };
    at += 12 + length;
  }
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  return Buffer.concat([numbers(data.length), body, numbers(crc32(body))]);
}

function numbers(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, at) => void bytes.writeUInt32BE(value, 4 * at));
  return bytes;
}
