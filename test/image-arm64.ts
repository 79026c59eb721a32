// `npm run check:arm64`: the image for arm64, built here and started as another user under qemu's user emulation. Not among
// the tests, because every instruction is translated. Prints a line for each thing it has seen; ends with 1 at the first
// that is not so.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findCommand } from '../scripts/counterparts.mjs';
import { buildImage } from '../scripts/image/image.mjs';
import { UnpackedImage } from './support/image.ts';
import { answerOf } from './support/image-roles.ts';

const emulator = findCommand('qemu-aarch64-static');
if (emulator === undefined || process.getuid?.() !== 0) {
  console.log('arm64 is not checked: needs root and qemu-aarch64-static (Debian: qemu-user-static)');
  process.exit(0);
}
const folder = mkdtempSync(join(tmpdir(), 'portolan-arm64-'));
let image: UnpackedImage | undefined;
try {
  await buildImage({ architectures: ['arm64'], out: join(folder, 'layout') });
  image = new UnpackedImage(join(folder, 'layout'), 'arm64', emulator);
  const { code, text } = await image.run(['--version']);
  if (code !== 0) throw new Error(`portolan --version ended with ${code}: ${text}`);
  console.log(`version ${text.trim()}`);
  const answer = await answerOf(image);
  if (!/ 243\.\d+\.\d+\.\d+/.test(answer)) throw new Error(`no clusterset IP in the answer: ${answer}`);
  console.log('home, agent and resolver work: an exported service has a clusterset IP');
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await image?.remove();
  rmSync(folder, { recursive: true, force: true });
}
