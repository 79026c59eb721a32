// The header by which an admin endpoint says whose Leases it belongs to. A proxy compares it before it passes anything on, so
// that an address which somebody else uses by now, or was never such an endpoint, gets no request. Pure.

export const adminHolderHeader = 'portolan-part';

export function formatHolders(holders: readonly string[]): string {
  return holders.map(encodeURIComponent).join(',');
}

export function isHolderAmong(header: string | undefined, holder: string): boolean {
  return holder !== '' && (header ?? '').split(',').includes(encodeURIComponent(holder));
}
