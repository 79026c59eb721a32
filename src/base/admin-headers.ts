// Headers between an admin endpoint and its callers. Pure.

/**
 * Names the holders of the Leases that an admin endpoint belongs to. A proxy compares it before it passes anything on, so
 * that an address which somebody else uses by now, or was never such an endpoint, gets no request.
 */
export const adminHolderHeader = 'portolan-part';

/** Carries the caller's ticket. An API server removes Authorization from what it passes on to a Pod. */
export const adminTicketHeader = 'portolan-ticket';

export function formatHolders(holders: readonly string[]): string {
  return holders.map(encodeURIComponent).join(',');
}

export function isHolderAmong(header: string | undefined, holder: string): boolean {
  return holder !== '' && (header ?? '').split(',').includes(encodeURIComponent(holder));
}
