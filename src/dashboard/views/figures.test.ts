import { expect, test } from 'vitest';
import { parseFigures } from './figures.ts';

const text = `# TYPE portolan_dns_queries_total counter
portolan_dns_queries_total{zone="clusterset.local",rcode="NOERROR"} 7
portolan_dns_queries_total{zone="other",rcode="NXDOMAIN"} 3
# TYPE portolan_dns_cache_total counter
portolan_dns_cache_total{result="hit"} 6
portolan_dns_cache_total{result="miss"} 2
portolan_dns_export_to_answer_seconds_sum 3
portolan_dns_export_to_answer_seconds_count 4
`;

test('figures: metrics of a resolver -> sums over labels, means of histograms, and nothing for what is not there', () => {
  expect(parseFigures(text)).toEqual({
    queries: 10,
    cacheHits: 6,
    cacheMisses: 2,
    exportSeconds: 0.75,
    changeSeconds: undefined,
  });
  expect(parseFigures('# TYPE portolan_dns_queries_total counter').queries).toBe(0);
  expect(parseFigures('')).toMatchObject({ queries: undefined, exportSeconds: undefined });
});
