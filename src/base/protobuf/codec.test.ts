import { describe, expect, test } from 'vitest';
import { decodeMessage } from './decode.ts';
import { encodeMessage } from './encode.ts';
import { Schema } from './schema.ts';
import { MalformedError, WireReader } from './wire-reader.ts';

const schema = new Schema({
  messages: {
    'a.Thing': [
      'name 1 string',
      'size 2 uint32',
      'color 3 enum a.Color',
      'parts 4 list a.Part',
      'by_key 5 map a.Part',
      'wait 6 google.protobuf.Duration',
      'limit 7 google.protobuf.UInt32Value',
      'extra 8 google.protobuf.Any',
      'facts 9 google.protobuf.Struct',
      'numbers 10 list uint32',
      'raw 11 bytes',
      'share 12 double',
      'colors 13 list enum a.Color',
      'isOn 14 google.protobuf.BoolValue',
      'ratio 15 float',
    ].join(';'),
    'a.Part': 'name 1 string;inner 2 a.Part',
  },
  enums: { 'a.Color': 'RED 0;BLUE 3' },
});

// The bytes are those that protoc's own encoder gives for the same text.
describe('encode: each type of field', () => {
  test.each([
    [{ name: 'ab' }, '0a026162'],
    [{ size: 300 }, '10ac02'],
    [{ color: 'BLUE' }, '1803'],
    [{ parts: [{ name: 'x' }, {}] }, '22030a01782200'],
    [{ by_key: { b: { name: 'y' }, a: {} } }, '2a050a01611200' + '2a080a016212030a0179'],
    [{ wait: '1.5s' }, '320808011080cab5ee01'],
    [{ limit: 5 }, '3a020805'],
    [{ numbers: [1, 300] }, '520301ac02'],
    [{ raw: 'AQI=' }, '5a020102'],
    [{ colors: ['BLUE', 'RED'] }, '6a020300'],
    [{ isOn: true }, '72020801'],
    [{ ratio: 0.5 }, '7d0000003f'],
    [{ size: 1, name: 'z' }, '0a017a1001'],
  ])('%j', (value, hex) => {
    const bytes = encodeMessage(schema, 'a.Thing', value);
    expect(Buffer.from(bytes).toString('hex')).toBe(hex);
  });
});

test('decode: what was encoded comes back, well-known types included', () => {
  const value = {
    name: 'n',
    by_key: { k: { name: 'v', inner: { name: 'deep' } } },
    wait: '90.000000001s',
    limit: 0,
    extra: { '@type': 'type.googleapis.com/google.protobuf.StringValue', value: 'text' },
    facts: { list: [1, 'two', false, null, { three: 3 }], none: null },
    numbers: [0, 4294967295],
    colors: ['RED', 'BLUE'],
    share: 0.25,
    ratio: 0.5,
    isOn: false,
  };
  const bytes = encodeMessage(schema, 'a.Thing', value);
  expect(decodeMessage(schema, 'a.Thing', new WireReader(bytes))).toEqual(value);
});

describe('encode: a body that does not fit the table -> an error with the path', () => {
  test.each([
    [{ nmae: 'x' }, 'a.Thing.nmae: a.Thing has no such field'],
    [{ size: '1' }, 'a.Thing.size: uint32 is expected, found "1"'],
    [{ size: -1 }, 'a.Thing.size: uint32 is expected, found -1'],
    [{ size: 1.5 }, 'a.Thing.size: uint32 is expected, found 1.5'],
    [{ color: 'GREEN' }, 'a.Thing.color: a value of a.Color is expected, found "GREEN"'],
    [{ parts: {} }, 'a.Thing.parts: a list is expected, found {}'],
    [{ parts: [{}, { inner: { nam: 1 } }] }, 'a.Thing.parts[1].inner.nam: a.Part has no such field'],
    [{ wait: '5' }, 'a.Thing.wait: google.protobuf.Duration is expected, found "5"'],
    [{ limit: -1 }, 'a.Thing.limit: google.protobuf.UInt32Value is expected, found -1'],
    [{ extra: {} }, 'a.Thing.extra: an object with @type is expected, found {}'],
    [{ extra: { '@type': 'x/a.None' } }, 'a.Thing.extra<a.None>: message a.None is not in the table'],
  ])('%j', (value, message) => {
    expect(() => encodeMessage(schema, 'a.Thing', value)).toThrow(message);
  });
});

test('encode: members and map keys in any order -> the same bytes', () => {
  const one = encodeMessage(schema, 'a.Thing', { name: 'x', size: 1, by_key: { a: {}, b: {} } });
  const other = encodeMessage(schema, 'a.Thing', { by_key: { b: {}, a: {} }, size: 1, name: 'x' });
  expect(Buffer.compare(one, other)).toBe(0);
});

test('decode: bytes from anybody -> a MalformedError or an object, never anything else', () => {
  const bytes = Buffer.from(encodeMessage(schema, 'a.Thing', { facts: { a: [{ b: 1 }] }, parts: [{ inner: {} }] }));
  for (let at = 0; at < bytes.length * 256; at++) {
    const changed = Buffer.from(bytes);
    changed[Math.floor(at / 256)] = at % 256;
    try {
      decodeMessage(schema, 'a.Thing', new WireReader(changed));
    } catch (error) {
      expect(error).toBeInstanceOf(MalformedError);
    }
  }
});
