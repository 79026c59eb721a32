// For tests: good queries, spoiled in the ways that break parsers, from a seeded random so that a failure can be repeated.

import { Asker, addImport, addService, encodeQuestion, makeCatalog, syncAll } from './ask.ts';

export interface FuzzOptions {
  readonly count: number;
  readonly seed: number;
  /** Throws or returns false if an independent parser cannot read our answer. */
  readonly isReadable: (answer: Buffer) => boolean;
}

export interface FuzzResult {
  answered: number;
  silent: number;
  readonly byRcode: Map<number, number>;
  readonly faults: string[];
}

const faultsMax = 5;

export async function runFuzz(options: FuzzOptions): Promise<FuzzResult> {
  const random = mulberry32(options.seed);
  const asker = new Asker(sampleCatalog());
  const corpus = sampleQueries();
  const result: FuzzResult = { answered: 0, silent: 0, byRcode: new Map(), faults: [] };
  for (let i = 0; i < options.count && result.faults.length < faultsMax; i++) {
    const sent = mutate(corpus[Math.floor(random() * corpus.length)]!, random);
    try {
      const reply = await asker.send(sent, { transport: random() < 0.5 ? 'udp' : 'tcp' });
      if (!reply) {
        result.silent += 1;
        continue;
      }
      result.answered += 1;
      const code = reply[3]! & 15;
      result.byRcode.set(code, (result.byRcode.get(code) ?? 0) + 1);
      if (reply.readUInt16BE(0) !== sent.readUInt16BE(0)) throw new Error('the answer has another id');
      if (!options.isReadable(reply)) throw new Error('the answer cannot be read');
    } catch (error) {
      result.faults.push(`${sent.toString('hex')}: ${(error as Error).stack}`);
    }
  }
  return result;
}

export function sampleCatalog() {
  const catalog = makeCatalog();
  addImport(catalog, 'shop/checkout', { ips: ['243.0.0.7', 'fd00::7'], ports: ['http:80'] });
  addImport(catalog, 'shop/db', {
    type: 'Headless',
    slices: [{ cluster: 'east', ports: ['sql:5432'], endpoints: ['10.1.0.1', '10.1.0.2', '10.1.0.3'] }],
  });
  addService(catalog, 'shop/alias', { externalName: 'web.shop.svc.cluster.local' });
  addService(catalog, 'shop/web', { ips: ['10.96.0.7'], ports: ['http:80'] });
  syncAll(catalog);
  return catalog;
}

export function sampleQueries(): Buffer[] {
  const questions = [
    'checkout.shop.svc.clusterset.local A',
    '_http._tcp.checkout.shop.svc.clusterset.local SRV',
    '_sql._tcp.db.shop.svc.clusterset.local SRV',
    'db.shop.svc.clusterset.local AAAA',
    'alias.shop.svc.cluster.local A',
    '7.0.96.10.in-addr.arpa PTR',
    'version.bind TXT CH',
    'example.com A',
  ];
  const edns = {
    options: [
      { code: 65_001, data: Buffer.from('east') },
      { code: 3, data: Buffer.alloc(0) },
    ],
  };
  return questions.flatMap((question) => [encodeQuestion(question), encodeQuestion(question, { edns })]);
}

export function mutate(original: Buffer, random: () => number): Buffer {
  let bytes = Buffer.from(original);
  const changes = Math.floor(random() * 4);
  for (let i = 0; i < changes; i++) {
    const at = Math.floor(random() * bytes.length);
    switch (Math.floor(random() * 6)) {
      case 0:
        bytes[at] = Math.floor(random() * 256);
        break;
      case 1:
        bytes[at]! ^= 1 << Math.floor(random() * 8);
        break;
      case 2:
        bytes = bytes.subarray(0, Math.max(1, at));
        break;
      case 3:
        bytes = Buffer.concat([bytes.subarray(0, at), bytes]);
        break;
      case 4:
        bytes[at] = [0x00, 0x3f, 0x40, 0x80, 0xc0, 0xff][Math.floor(random() * 6)]!;
        break;
      default:
        bytes = Buffer.concat([bytes, Buffer.alloc(Math.floor(random() * 600), Math.floor(random() * 256))]);
    }
  }
  return bytes.length < 2 ? Buffer.alloc(2) : bytes;
}

/** A small, good enough generator with a seed. */
export function mulberry32(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
