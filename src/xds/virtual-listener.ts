// The listener that redirected connections arrive at. It hands each to the listener of its original destination, and
// closes those that have none. Pure.

import { anyAddress, listenAddress, tcpProxy } from './bodies.ts';
import type { XdsResource } from './resource.ts';

/** Where the node's nftables rules send connections to addresses of peers' and clusterset services. */
export const virtualPort = 15_003;
const nowhere = 'portolan-nowhere';

export function virtualListener(port = virtualPort, host = anyAddress): XdsResource[] {
  const name = 'portolan-virtual';
  const address = listenAddress(host, port);
  const body = { name, address, use_original_dst: true, filter_chains: [{ filters: [tcpProxy(nowhere)] }] };
  const empty = { name: nowhere, type: 'STATIC', connect_timeout: '1s', load_assignment: { cluster_name: nowhere } };
  return [
    { type: 'listener', name, body, causes: [] },
    { type: 'cluster', name: nowhere, body: empty, causes: [] },
  ];
}
