// Which connections of a node are sent to its Envoy, and to which of its two outbound listeners. Where ranges overlap, the
// smallest decides. Pure.

import { type IpRange, parseRange } from '../../base/net/ip.ts';
import { hasNames, type PortTables, speechClasses } from './tables.ts';

export interface Redirect {
  readonly range: IpRange;
  readonly protocol: 'tcp';
  readonly port: number;
  readonly toPort: number;
}

/** Ports of the two outbound listeners: one looks at the first bytes of a connection, the other does not. */
export interface OutboundPorts {
  readonly inspected: number;
  readonly plain: number;
}

export const defaultOutboundPorts: OutboundPorts = { inspected: 15001, plain: 15002 };

const everywhere = ['0.0.0.0/0', '::/0'].map((text) => parseRange(text)!);

export function redirectsOf(tables: readonly PortTables[], ports: OutboundPorts): Redirect[] {
  return tables.flatMap((table) => {
    const to = (isPlain: boolean) => (isPlain ? ports.plain : ports.inspected);
    const redirect = (range: IpRange, isPlain: boolean): Redirect => ({
      ...{ range, protocol: 'tcp', port: table.port, toPort: to(isPlain) },
    });
    const vips = table.vips.map((vip) => redirect(parseRange(vip.address)!, vip.isPlain));
    // A name says nothing of addresses: all connections of the port have to be looked at.
    if (capturesPort(table)) return [...vips, ...everywhere.map((range) => redirect(range, false))];
    const ranges = speechClasses.flatMap((one) => table.classes[one].ranges.map(({ range }) => range));
    const unique = new Map(ranges.map((range) => [`${range.family} ${range.first}/${range.size}`, range]));
    return [...vips, ...Array.from(unique.values(), (range) => redirect(range, table.isPlain))];
  });
}

/** Whether a Domain match takes this port for all destinations. */
export function capturesPort({ classes }: PortTables): boolean {
  return speechClasses.some((one) => hasNames(classes[one]));
}
