// Files as a tar archive (POSIX.1-1988 ustar), in the order given. Pure.

export interface ArchiveFile {
  readonly path: string;
  readonly text: string;
}

const block = 512;
const pathMax = 100;

export function tarOf(files: readonly ArchiveFile[], seconds: number): Uint8Array {
  const pieces = files.flatMap(({ path, text }) => {
    const body = Buffer.from(text);
    return [header(path, body.length, seconds), body, Buffer.alloc((block - (body.length % block)) % block)];
  });
  return Buffer.concat([...pieces, Buffer.alloc(2 * block)]);
}

function header(path: string, size: number, seconds: number): Buffer {
  const bytes = Buffer.alloc(block);
  bytes.write(path.slice(-pathMax), 0, 'utf8');
  const octal = (value: number, at: number, digits: number) => bytes.write(value.toString(8).padStart(digits, '0'), at);
  octal(0o600, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(size, 124, 11);
  octal(Math.floor(seconds), 136, 11);
  bytes.write('0ustar\0' + '00', 156);
  // The checksum counts its own field as blanks.
  bytes.fill(' ', 148, 156);
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return bytes;
}
