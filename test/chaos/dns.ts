// The long runs of the DNS server: ten million mutated packets with memory flat, and a million queries of ten clusters through
// one cache. Run as: node --expose-gc test/chaos/dns.ts [PACKETS] [QUERIES]

import packet from 'dns-packet';
import { memoryBytes } from '../../src/dns/testing/edge/memory.ts';
import { runFuzz } from '../../src/dns/testing/fuzz.ts';
import { runTenClusters } from '../../src/dns/testing/ten-clusters.ts';

const packets = Number(process.argv[2] ?? 10_000_000);
const queries = Number(process.argv[3] ?? 1_000_000);
const roundSize = Math.min(packets, 500_000);
const growthBytesMax = 8 << 20;
const isReadable = (bytes: Buffer) => packet.decode(bytes) !== undefined;

let firstBytes = 0;
for (let done = 0, round = 0; done < packets; done += roundSize, round++) {
  const { faults, answered, silent } = await runFuzz({ count: roundSize, seed: 4711 + round, isReadable });
  if (faults.length > 0) throw new Error(faults.join('\n'));
  const bytes = memoryBytes();
  // The first round fills caches that are meant to be filled.
  if (round === 0) firstBytes = bytes;
  console.log(
    `${done + roundSize} packets: ${answered} answered, ${silent} silent, ${(bytes / 1e6).toFixed(1)} MB in use`,
  );
  if (bytes > firstBytes + growthBytesMax) throw new Error(`memory grew by ${(bytes - firstBytes) / 1e6} MB`);
}

const { wrong, distinct, hitRatio } = await runTenClusters({ count: queries, isClusterInKey: true });
console.log(
  `${queries} queries of ten clusters: ${wrong} meant for another, ${distinct.size} answers, hit ratio ${hitRatio}`,
);
if (wrong > 0 || distinct.size !== 10 || hitRatio < 0.9) throw new Error('answers were mixed up');
const broken = await runTenClusters({ count: 10_000, isClusterInKey: false });
console.log(`without the cluster in the key: ${broken.wrong} of 10000 meant for another`);
if (broken.wrong === 0) throw new Error('this run would not have noticed');
