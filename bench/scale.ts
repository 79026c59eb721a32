// `npm run bench:scale`: a whole agent (a process, with its home) that joins sets of a hundred clusters with 1,000, 10,000
// and 100,000 services of three endpoints, and some with one service of many endpoints in 50 clusters. The other members have
// their records at the broker and live. `--services 1000,10000` and `--endpoints 1000` choose sizes, `--only services` or `big` one part.

import { mkdtempSync, rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Figure, report } from './report.ts';
import { measureSize, type Size } from './scale/measure.ts';

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '1000,10000,100000' },
    clusters: { type: 'string', default: '100' },
    endpoints: { type: 'string', default: '1000,10000' },
    only: { type: 'string' },
    json: { type: 'string' },
  },
});
const clusters = Number(values.clusters);
const figures: Figure[] = [];
const directory = mkdtempSync(`${import.meta.dirname}/.bench-`);
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));

const perChange = {
  'one endpoint changed, until it is in the home, p99': { text: 'under 200 ms', most: 200 },
  'one endpoint changed, bytes to a reader': { text: 'under 10 kB', most: 10_000 },
};
const whole = {
  ...perChange,
  'joined, all imported': { text: 'under 20 s', most: 20 },
  'memory of its agent': { text: 'under 300 MB', most: 300 },
};
const sizes: Size[] = [];
if (values.only !== 'big')
  for (const services of values.services.split(',').map(Number)) sizes.push(manyServices(services));
if (values.only !== 'services')
  for (const endpoints of values.endpoints.split(',').map(Number)) sizes.push(bigService(endpoints, 50));
for (const [at, size] of sizes.entries()) figures.push(...(await measureSize(size, `${directory}/${at}`)));
report('How large', figures);
process.exit(0);

function manyServices(services: number): Size {
  return {
    title: `${clusters} clusters, ${services} services`,
    clusters,
    imports: services,
    published: (ids) =>
      Array.from({ length: services }, (_, index) => {
        const id = ids[index % ids.length]!;
        const addresses = [[0, 1, 2].map((part) => `10.${index % 200}.${(index >> 8) % 256}.${part + 1}`)];
        return { id, service: { namespace: 'shop', name: `${id}-s${index}` }, addresses };
      }),
    wanted: services === 100_000 ? whole : perChange,
  };
}

function bigService(endpoints: number, members: number): Size {
  const each = endpoints / members;
  const perSlice = Math.min(100, each);
  const slices = each / perSlice;
  return {
    title: `${endpoints} endpoints in ${members} clusters`,
    clusters: members,
    imports: 1,
    published: (ids) =>
      ids.map((id, cluster) => {
        const addresses = Array.from({ length: slices }, (_, slice) =>
          Array.from({ length: perSlice }, (_each, at) => `10.${cluster}.${slice}.${at + 1}`),
        );
        return { id, service: { namespace: 'shop', name: 'big' }, addresses };
      }),
    wanted: { ...perChange, 'memory of its agent': { text: 'under 300 MB', most: 300 } },
  };
}
