// Frames of HTTP/2 as bytes, for clients that a library would not be (RFC 9113 section 4).

/** Preface, and settings with the largest windows. */
export const opening = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff]),
  Buffer.from([0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0, 0, 0]),
]);

/** HPACK static table: :method GET, :scheme https, :path /, and :authority x. */
export function getFrame(id: number): Buffer {
  const block = Buffer.from([0x82, 0x87, 0x84, 0x41, 0x01, 0x78]);
  return Buffer.concat([Buffer.from([0, 0, block.length, 1, 5, 0, 0, id >> 8, id & 0xff]), block]);
}

export function resetFrame(id: number): Buffer {
  return Buffer.from([0, 0, 4, 3, 0, 0, 0, id >> 8, id & 0xff, 0, 0, 0, 8]);
}
