// The services of the benchmark: ten tuples each, in one Pod range, and clusters with a range of sources each.

export const tuplesPerService = 10;
/** As many clusters as the facts had ranges. */
export const callers = 41;
export const podRange = '10.64.0.0/10';
/** An established connection to it is measured. */
export const target = { address: '10.66.0.2', port: 8080 };

export function callerRange(index: number): string {
  return `10.191.${index}.0/24`;
}

/** Service 0 is the one that is measured. */
export function serviceTuples(service: number): string[] {
  const [high, low] = [70 + (service >> 8), service & 255];
  return Array.from({ length: tuplesPerService }, (_, index) =>
    service === 0 && index === 0
      ? `4 ${target.address} . udp . ${target.port}`
      : `4 10.${high}.${low}.${1 + (index >> 1)} . tcp . ${8080 + (index & 1)}`,
  );
}
