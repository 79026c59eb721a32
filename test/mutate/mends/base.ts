// Mends of what every process uses: HTTP, TLS, keys.

import type { Mend } from '../mend.ts';

export const baseMends: readonly Mend[] = [
  {
    test: 'src/base/real/hpke.test.ts',
    title: 'sealed for one reader -> opens for that reader, from that sender, with that info alone',
    file: 'src/base/real/hpke.ts',
    was: 'senderPublicKey: await kem.deserializePublicKey(sender),',
    became: '',
  },
  {
    test: 'src/base/grpc/transport-server.test.ts',
    title: 'grpc server: %s says goodbye and never hangs up -> its socket is closed',
    file: 'src/base/grpc/transport-server.ts',
    was: 'onGivenUp: () => connection.destroy() });',
    became: 'onGivenUp: () => {} });',
  },
  {
    test: 'src/base/grpc/transport-server.test.ts',
    title: 'grpc server: a unix socket, whatever the umask -> its permissions from the first moment on',
    file: 'src/base/grpc/transport-server.ts',
    was: 'const before = process.umask(0o777 & ~mode);',
    became: 'const before = process.umask(mode & 0);',
  },
  {
    test: 'src/base/grpc/transport-server.test.ts',
    title:
      'grpc server: more connections without a handshake than allowed -> the oldest are closed, a caller is served',
    file: 'src/base/grpc/transport-server.ts',
    was: 'if (this.#unknown.size > this.#limits.handshakes) this.#unknown.values().next().value?.destroy();',
    became: '',
  },
  {
    test: 'src/base/net/followed-names.test.ts',
    title: 'followed names: a thousand names -> eight are asked at a time; none is followed any more -> none is asked',
    file: 'src/base/net/followed-names.ts',
    was: 'if (this.#asked >= askedAtOnceMax) return;',
    became: 'if (this.#asked < 0) return;',
  },
  {
    test: 'src/base/real/admin-endpoint.test.ts',
    title: 'what is seen of connections -> only with a ticket for it, from this machine too',
    file: 'src/base/real/admin-endpoint.ts',
    was: 'if (!isOfFlows && isOpenTo(request, path)) return serve();',
    became: 'if (isOpenTo(request, path)) return serve();',
  },
  {
    test: 'src/base/real/admin-endpoint.test.ts',
    title: 'Host %j with %o -> 403 on every path, and nothing happens',
    file: 'src/base/real/admin-guard.ts',
    was: 'if (!isOwnName(name, listenHost)) {',
    became: "if (!isOwnName(name, listenHost) && name === '-') {",
  },
  {
    test: 'src/base/real/connection-bounds.test.ts',
    title:
      'connection bounds: all places are taken by connections that ask nothing -> the oldest gives way, requests are answered',
    file: 'src/base/real/connection-bounds.ts',
    was: ': open.size < max || makeRoom(() => true);',
    became: ': open.size < max;',
  },
  {
    test: 'src/base/real/connection-bounds.test.ts',
    title: 'connection bounds: one address takes more than its share -> its own give way, those of others stay',
    file: 'src/base/real/connection-bounds.ts',
    was: '? makeRoom((entry) => entry.address === address)',
    became: '? makeRoom(() => true)',
  },
  {
    test: 'src/base/x509/chain.test.ts',
    title: 'chain: %s -> as openssl says',
    file: 'src/base/x509/chain.ts',
    was: 'if (isIssuer && !isAuthority) return',
    became: 'if (isIssuer && isAuthority === null) return',
  },
  {
    test: 'src/peering/refused-meshes.test.ts',
    title: 'peering: a stranger calls a hundred times -> refused each time, twenty lines are logged',
    file: 'src/base/log-budget.ts',
    was: 'if (this.#lines > this.#options.linesMax) {',
    became: 'if (this.#lines < 0) {',
  },
  {
    test: 'src/peering/trust/trust.test.ts',
    title: 'trust: %s -> refused with the reason',
    file: 'src/base/x509/chain.ts',
    was: 'if (!isIssuer && isAuthority) return',
    became: 'if (!isIssuer && isAuthority === null) return',
  },
  {
    test: 'src/peering/transport/transport.test.ts',
    title: 'transport: an owner with the certificate of an authority as its own -> Unauthenticated for its consumer',
    file: 'src/base/grpc/transport-client.ts',
    was: 'if (isNamed && !certificate.ca) return undefined;',
    became: 'if (isNamed) return undefined;',
  },
  {
    test: 'test/peering-attack.test.ts',
    title:
      'strangers: 150 connections without a certificate, 16 unfinished POSTs each -> memory stays, peers are served',
    file: 'src/base/grpc/server-options.ts',
    was: 'strangerMs: 10_000,',
    became: 'strangerMs: 10_000_000,',
  },
  {
    test: 'src/base/grpc/transport-server.test.ts',
    title: 'grpc server: unfinished bodies -> so many at once, each for so long',
    file: 'src/base/grpc/transport-plain.ts',
    was: 'if (this.#reading >= limits.bodies)',
    became: 'if (this.#reading < 0)',
  },
];
