// Mends of peering.

import type { Mend } from '../mend.ts';

export const peeringMends: readonly Mend[] = [
  {
    test: 'src/peering/owner/introduction-limits.test.ts',
    title: 'introduction limits: one address tries again and again -> five times, then once in ten seconds',
    file: 'src/peering/owner/introduction-limits.ts',
    was: 'perAddress: { burst: 5, everyMs: 10_000 }',
    became: 'perAddress: { burst: 60, everyMs: 10 }',
  },
  {
    test: 'src/peering/owner/introduction.test.ts',
    title: 'introduction: two come with one token at once -> one becomes a Peer, the other is refused',
    file: 'src/peering/owner/introduction.ts',
    was: 'if (!isTaken) return',
    became: 'if (!isTaken && found === null) return',
  },
  {
    test: 'src/peering/owner/owner.test.ts',
    title: 'owner: a peer opens streams in a loop -> twenty at once, then one in a second; the others are refused',
    file: 'src/peering/owner/owner.ts',
    was: 'const streamsBurst = 20;',
    became: 'const streamsBurst = 2000;',
  },
  {
    test: 'src/peering/rules/name-claims.test.ts',
    title: 'names: two owners claim one name -> the older keeps it, the other has its alias, both are told',
    file: 'src/peering/rules/name-claims.ts',
    was: 'const claims = [...this.#claimsOf(name), claimant].sort(compareRights);',
    became: 'const claims = [...this.#claimsOf(name), claimant].sort((one, other) => compareRights(other, one));',
  },
  {
    test: 'src/peering/session/consumer-session-limits.test.ts',
    title:
      'consumer: more bytes than may be kept of one peer -> the rest refused as ResourceExhausted, smaller forms taken',
    file: 'src/peering/session/consumer-session.ts',
    was: 'return more > 0 && this.#bytes + more > bytesMax',
    became: 'return more > 0 && this.#bytes + more < 0',
  },
  {
    test: 'src/peering/transport/bounded-decode.test.ts',
    title: 'bounded decode: half a million %s -> refused before they are made',
    file: 'src/peering/transport/bounded-decode.ts',
    was: 'if (--values.left < 0) throw',
    became: 'if (--values.left === 0.5) throw',
  },
  {
    test: 'src/peering/trust/trust.test.ts',
    title: 'the identity of a proxy, whatever its purposes',
    file: 'src/peering/trust/trust.ts',
    was: 'if (isProxyIdentity(identity))\n',
    became: "if (identity === '')\n",
  },
  {
    test: 'src/peering/kinds/ingress-address.test.ts',
    title: 'ingress: %s -> %s',
    file: 'src/peering/kinds/ingress-address.ts',
    was: 'if (special !== undefined) return',
    became: 'if (special === null) return',
  },
  {
    test: 'src/main/xds/identity.test.ts',
    title: 'proxy keys: a peering stream with the key of a sidecar or of a workload -> Unauthenticated at every peer',
    file: 'src/peering/kinds/proxy-identity.ts',
    was: 'return parseSpiffeId(identity)?.path.startsWith(proxyPath) === true;',
    became: 'return parseSpiffeId(identity)?.path === proxyPath;',
  },
  {
    test: 'src/main/xds/identity.test.ts',
    title:
      'proxy keys: sidecars beside a workload -> its name in the certificate of each, keys of their own; no catalog for them',
    file: 'src/peering/kinds/proxy-identity.ts',
    was: 'return parseSpiffeId(identity)?.path.startsWith(proxyPath) === true;',
    became: "return parseSpiffeId(identity)?.path.startsWith(proxyPath + 'sidecar') === true;",
  },
  {
    test: 'src/peering/kinds/ingress-address.test.ts',
    title: 'shared service: SAN %s %s of the peer acme.example -> %s',
    file: 'src/peering/kinds/shared-service.ts',
    was: 'if (trustDomains === undefined || trustDomains.includes(domain)) return [];',
    became: 'if (trustDomains !== null) return [];',
  },
  {
    test: 'src/peering/owner/owner-catalog.test.ts',
    title: 'export: names, paths and selectors that fit services of another namespace -> none of those is offered',
    file: 'src/peering/owner/owner-catalog.ts',
    was: 'for (const [exportName, peerExport] of this.#exports.get(namespace) ?? [])',
    became: 'for (const [exportName, peerExport] of [...this.#exports.values()].flatMap((all) => [...all]))',
  },
  {
    test: 'test/peering-attack.test.ts',
    title:
      'one peer sends 300 services of 0.9 MB at once -> so much is stored and no more, memory stays, another peer is synced meanwhile',
    file: 'src/peering/trust/peer-registry.ts',
    was: 'bytesMax: (spec.storedMegabytesMax ?? peerDefaults.storedMegabytesMax) * 1024 * 1024,',
    became: 'bytesMax: (spec.storedMegabytesMax ?? peerDefaults.storedMegabytesMax) * 1024 * 1024 * 1024,',
  },
];
