// Mends of the discovery server.

import type { Mend } from '../mend.ts';

export const xdsMends: readonly Mend[] = [
  {
    test: 'src/main/xds/client-keys.test.ts',
    title:
      'client keys: used by an account -> sent to sidecars of nodes that run it, to no other; later Pods bring it, gone ones take it',
    file: 'src/xds/sources/node-workloads.ts',
    was: 'this.#counts.has(keyOf(node, namespace, serviceAccount)),',
    became: "this.#counts.has(keyOf(node, namespace, serviceAccount)) || namespace !== '',",
  },
  {
    test: 'src/main/xds/client-keys.test.ts',
    title: 'client keys: a sidecar beside one workload -> those that this one uses, whatever the name of its Pod',
    file: 'src/xds/sources/node-workloads.ts',
    was: 'if (workload !== undefined)',
    became: "if (workload !== undefined && name === '')",
  },
  {
    test: 'src/xds/server/issuance.test.ts',
    title: 'issuance: many at once -> four are asked about, the others get 429; then there is room again',
    file: 'src/xds/server/issuance.ts',
    was: 'const askedAtOnceMax = 4;',
    became: 'const askedAtOnceMax = 4000;',
  },
  {
    test: 'test/xds-peer-names.test.ts',
    title:
      'it moves, cannot be looked up, leads to loopback and back -> followed within 7 s, kept, withheld, served again',
    file: 'src/xds/sources/ingress-names.ts',
    was: 'return why === undefined;',
    became: 'return true;',
  },
  {
    test: 'src/main/xds/identity.test.ts',
    title:
      'proxy keys: a program on the local socket -> refused as a sidecar or ingress, and no secret as a gRPC client',
    file: 'src/xds/identity/proxy-identity.ts',
    was: "if (identity === undefined && claimed.role !== 'grpc')",
    became: 'if (identity === undefined && claimed.role === undefined)',
  },
  {
    test: 'src/main/xds/identity.test.ts',
    title:
      'proxy keys: a sidecar -> a certificate of its own for calls, which is neither that of the mesh nor of another sidecar',
    file: 'src/xds/sources/peers.ts',
    was: 'certificates.of(proxyIdentity(domain, proxy), authority, formatNodeId(proxy))',
    became: "certificates.of(proxyIdentity(domain, { ...proxy, name: 'all' }), authority, formatNodeId(proxy))",
  },
  {
    test: 'src/main/xds/status.test.ts',
    title:
      'xds: a client of the local socket refuses a resource -> shown in status, and no condition says so; nor does it spoil a proxy of that name',
    file: 'src/xds/server/proxies.ts',
    was: 'isIdentified && refusals.size > 0 && nowMs - leftMs < this.#refusalsKeptMs;',
    became: 'isIdentified !== null && refusals.size > 0 && nowMs - leftMs < this.#refusalsKeptMs;',
  },
  {
    test: 'src/main/xds/status.test.ts',
    title:
      'xds: a proxy that refused something leaves -> its refusal counts until it may be back, then the condition is taken back',
    file: 'src/xds/server/proxies.ts',
    was: 'isIdentified && refusals.size > 0 && nowMs - leftMs < this.#refusalsKeptMs;',
    became: 'isIdentified && refusals.size > 0 && nowMs - leftMs < Number.MAX_VALUE;',
  },
  {
    test: 'src/main/xds/part.test.ts',
    title: 'its certificate ends while it is served -> the stream ends then with Unauthenticated',
    file: 'src/xds/server/proxy-stream.ts',
    was: 'untilEndMs === undefined ? undefined : world.timers.after(',
    became: 'untilEndMs !== -1 ? undefined : world.timers.after(',
  },
  {
    test: 'src/main/xds/part.test.ts',
    title: 'no certificate -> Unauthenticated, counted',
    file: 'src/xds/identity/proxy-identity.ts',
    was: "if (leaf === undefined) return refused('no certificate was presented');",
    became: "if (leaf === undefined) return { kind: 'trusted', caller: { identity: undefined } };",
  },
  {
    test: 'src/main/xds/part.test.ts',
    title: 'node id %s -> PermissionDenied, counted',
    file: 'src/xds/identity/proxy-identity.ts',
    was: 'if (identity !== undefined && formatNodeId(identity) !== id)',
    became: "if (identity !== undefined && formatNodeId(identity) === '')",
  },
  {
    test: 'src/main/xds/part.test.ts',
    title: 'xds: names by the hundred thousand in a few requests -> ResourceExhausted, counted',
    file: 'src/xds/server/proxy-stream.ts',
    was: 'if (this.#opened.session.subscribed > namesMax) {',
    became: 'if (this.#opened.session.subscribed < 0) {',
  },
  {
    test: 'src/xds/server/wire.test.ts',
    title: 'wire: millions of names, empty or not, or a long one -> refused, most of them before they are read',
    file: 'src/xds/server/wire.ts',
    was: 'if (names.length > namesMax)',
    became: 'if (names.length < 0)',
  },
  {
    test: 'test/xds-issuance.test.ts',
    title:
      'xds bootstrap with another token -> none: of another account, of no Pod, for the API server, of a Pod that is gone',
    file: 'src/xds/identity/proxy-token.ts',
    was: 'const isWorkload = role === undefined && sidecarAccounts.has(',
    became: 'const isWorkload = role === undefined && ((_: string) => sidecarAccounts.size > 0)(',
  },
  {
    test: 'test/gateways/refused.test.ts',
    title:
      'a policy names namespaces -> only certificates of those are admitted, streams of others end; whole clusters by any',
    file: 'src/xds/gateways/service.ts',
    was: 'identities: [namespaceIdentities(domain, namespace)]',
    became: 'identities: [namespaceIdentities(domain)]',
  },
  {
    test: 'test/gateways.test.ts',
    title: 'callers with other certificates, names and wishes -> refused, each with its reason',
    file: 'src/xds/gateways/service.ts',
    was: "const rbac = allowed === 'all' ? allowAll :",
    became: "const rbac = allowed === 'all' || allowed.length >= 0 ? allowAll :",
  },
  {
    test: 'test/gateways.test.ts',
    title: 'a gateway that presents another certificate than its own cluster would -> nothing is sent to it',
    file: 'src/xds/gateways/near-side.ts',
    was: 'validation_context_sds_secret_config: secretReference(remoteSecret(id)),',
    became: '...(remoteSecret(id) === undefined && {}),',
  },
  {
    test: 'test/gateways.test.ts',
    title: 'a gateway is published no longer, and still answers -> no new stream goes to it',
    file: 'src/xds/gateways/near-side.ts',
    was: 'ignore_health_on_host_removal: true,',
    became: 'ignore_health_on_host_removal: false,',
  },
  {
    test: 'test/gateways/refused.test.ts',
    title:
      'a member that opens more streams than it may and keeps them, beside connections that say nothing -> the rest is refused, the silent are closed, and another member does not notice',
    file: 'src/xds/gateways/gateway.ts',
    was: "circuit_breakers: { thresholds: [bounds] },\n    transport_socket: { name: 'internal'",
    became:
      "circuit_breakers: { thresholds: [{ ...bounds, max_pending_requests: streamsMax }] },\n    transport_socket: { name: 'internal'",
  },
  {
    test: 'test/gateways-udp.test.ts',
    title: 'callers by another protocol, name or service than they may -> refused',
    file: 'src/xds/gateways/service.ts',
    was: "const rbac = allowed === 'all' ? allowAll : allow(",
    became: 'const rbac = allowed !== undefined ? allowAll : allow(',
  },
  {
    test: 'test/gateways-udp.test.ts',
    title:
      'one of two gateways is killed, and more sessions than a listener has -> others are used, and the rest gets nothing',
    file: 'src/xds/gateways/udp-near-side.ts',
    was: 'const bounds = { max_connections: udpSessionsMax, max_requests: udpSessionsMax, max_pending_requests: udpSessionsMax };',
    became:
      'const bounds = { max_connections: 1_000_000, max_requests: 1_000_000, max_pending_requests: 1_000_000 + 0 * udpSessionsMax };',
  },
];
