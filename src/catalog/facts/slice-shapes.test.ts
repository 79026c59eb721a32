import { expect, test } from 'vitest';
import { ByteReader, ByteWriter } from '../../base/dns/bytes.ts';
import { type SliceShape, SliceShapes } from './slice-shapes.ts';

const shapeWith = (port: number, zones: readonly string[] = ['east-a']): SliceShape => ({
  isImported: true,
  cluster: 'east',
  ports: [{ name: 'http', protocol: 'TCP', port }],
  zones,
  hasHostnames: port === 81,
  isVirtual: port === 82,
});

function written(shapes: SliceShapes, shape: SliceShape): Uint8Array {
  return shapes.write(new ByteWriter(), shape).copy();
}

test('slice shapes: one that came before -> two bytes, and read as it was', () => {
  const shapes = new SliceShapes();
  const first = written(shapes, shapeWith(80));
  expect(written(shapes, shapeWith(81))).not.toEqual(first);
  expect(written(shapes, shapeWith(80))).toEqual(first);
  expect(first.length).toBe(2);
  expect(shapes.read(new ByteReader(first))).toEqual(shapeWith(80));
});

test('slice shapes: too long, or after very many others -> written out in the slice, and read as it was', () => {
  const shapes = new SliceShapes();
  const long = shapeWith(
    80,
    Array.from({ length: 30 }, (_, i) => `zone-${i}`),
  );
  for (let port = 1; port <= 5000; port++) written(shapes, shapeWith(port));
  for (const shape of [long, shapeWith(5000), shapeWith(4000)])
    expect(shapes.read(new ByteReader(written(shapes, shape)))).toEqual(shape);
  expect(written(shapes, long).length).toBeGreaterThan(100);
  expect(written(shapes, shapeWith(5000)).length).toBeGreaterThan(10);
  expect(written(shapes, shapeWith(4000)).length).toBe(2);
});
