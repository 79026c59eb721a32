// Mends of commands, the dashboard, installation and processes.

import type { Mend } from '../mend.ts';

export const toolsMends: readonly Mend[] = [
  {
    test: 'src/dashboard/server.test.ts',
    title: '%s -> %j: %d',
    file: 'src/dashboard/server.ts',
    was: 'if (refusal !== undefined) return reply(response, 403, { error: refusal });',
    became: '',
  },
  {
    test: 'src/dashboard/server.test.ts',
    title: 'a path that is no URL, many times -> 400 each time, and no line in the log',
    file: 'src/dashboard/server.ts',
    was: "if (url === null) return reply(response, 400, { error: 'the path cannot be read' });",
    became: "if (url === null) throw new Error('the path cannot be read');",
  },
  {
    test: 'src/dashboard/session.test.ts',
    title: 'a bearer sees more objects than the bound -> the session ends and says why',
    file: 'src/dashboard/session.ts',
    was: 'if (this.objects() > (this.#options.objectsMax ?? defaultObjectsMax)) return this.#options.onTooLarge?.();',
    became: '',
  },
  {
    test: 'src/home/prototype-names.test.ts',
    title: 'as a key of stringData, beside others -> kept',
    file: 'src/kube/objects/secret.ts',
    was: 'secret.data = Object.fromEntries([...Object.entries(secret.data ?? {}), ...added]);',
    became: 'for (const [key, text] of added) (secret.data ??= {})[key!] = text!;',
  },
  {
    test: 'src/kube/client/ticket-check.test.ts',
    title: 'ticket check: many at once -> four are asked about, the others get 429',
    file: 'src/kube/client/ticket-check.ts',
    was: 'const askedAtOnceMax = 4;',
    became: 'const askedAtOnceMax = 4000;',
  },
  {
    test: 'src/main/peering/part.test.ts',
    title:
      'peering role: a peer names the address that our API has inside the cluster as its ingress -> refused, without a flag',
    file: 'src/main/identity/reserved.ts',
    was: "apiAddresses = (next?.spec?.clusterIPs ?? []).filter((ip) => ip !== 'None');",
    became: "apiAddresses = (next?.spec?.clusterIPs ?? []).filter((ip) => ip === 'None');",
  },
  {
    test: 'test/clusterset-join.test.ts',
    title:
      'broker accept: the ranges that a member joined with -> its limit from then on; addresses outside that it has published -> refused and named',
    file: 'src/cli/clusterset/broker-accept.ts',
    was: 'if (outside.size === 0) return;',
    became: 'if (outside.size >= 0) return;',
    isInSequence: true,
  },
  {
    test: 'src/main/secret-rights.test.ts',
    title:
      'secrets: %s in the system namespace -> its own of earlier versions and no other; it can make none, nor get an account by one',
    file: 'src/install/parts.ts',
    was: "...{ apiGroups: [''], resources: ['secrets'], resourceNames, verbs: ['get'] },",
    became: "...{ apiGroups: [''], resources: ['secrets'], verbs: ['get', 'create'] },",
  },
  {
    test: 'src/main/secret-rights.test.ts',
    title: 'secrets: the authority of xds -> readable by xds alone; no account lies where Secrets can be made',
    file: 'src/install/parts.ts',
    was: '        namespace: xdsNamespace,\n',
    became: "        namespace: 'portolan-system',\n",
  },
  {
    test: 'src/install/install.test.ts',
    title: '%s -> its account has no right, and only the container that starts it sees a token, which xds alone takes',
    file: 'src/install/workload.ts',
    was: '...(part.envoyRole === undefined ? {} : { automountServiceAccountToken: false }),',
    became: '',
  },
  {
    test: 'test/clusterset-join.test.ts',
    title: 'join: with a token -> the cluster knows its id, its set, and the broker; the token is used up [003-09]',
    file: 'src/cli/clusterset/join.ts',
    was: '  await useUp(deps, { ...token, token: issued.token });',
    became: "  if (issued.token === '') await useUp(deps, { ...token, token: issued.token });",
    isInSequence: true,
  },
  {
    test: 'test/hostile-client.test.ts',
    title: 'hostile: a message with escapes of a terminal and faked lines -> commands print it as text',
    file: 'src/cli/table.ts',
    was: 'const rows = given.map((row) => row.map(printableLine));',
    became: 'const rows = given.map((row) => (row.length < 0 ? row.map(printableLine) : [...row]));',
  },
  {
    test: 'src/dashboard/session.test.ts',
    title:
      'a thousand invented tokens from one address -> a request for each of the first, then none; another address signs in',
    file: 'src/dashboard/sessions.ts',
    was: "if (verdict.kind === 'later') throw",
    became: "if (verdict.kind === 'later' && address === '-') throw",
  },
  {
    test: 'src/install/install.test.ts',
    title:
      'people in their own namespaces -> editors export and shift, viewers read; nobody writes imports or policies of access [003-43]',
    file: 'src/install/namespace-roles.ts',
    was: "{ name: 'portolan:limit-callers' }",
    became: "{ name: 'portolan:limit-callers', labels: aggregatedTo('edit', 'admin') }",
  },
  {
    test: 'test/gateways.test.ts',
    title: '%s -> new streams refused within 1 s, open ones ended within 10 s; those of others go on',
    file: 'src/install/envoy-containers.ts',
    was: "export const gatewayArgs: readonly string[] = ['--drain-time-s', '4'];",
    became: "export const gatewayArgs: readonly string[] = ['--drain-time-s', '600'];",
  },
  {
    test: 'test/xds-revocation.test.ts',
    title: 'the service is shared no longer -> all of its connections are closed within 5 s',
    file: 'src/install/envoy-containers.ts',
    was: "export const ingressArgs: readonly string[] = ['--drain-time-s', '2'];",
    became: "export const ingressArgs: readonly string[] = ['--drain-time-s', '600'];",
  },
  {
    test: 'test/xds-revocation.test.ts',
    title: '%s -> closed within 5 s, and not opened again; that of another peer goes on',
    file: 'src/install/envoy-containers.ts',
    was: "export const ingressArgs: readonly string[] = ['--drain-time-s', '2'];",
    became: "export const ingressArgs: readonly string[] = ['--drain-time-s', '600'];",
  },
  {
    test: 'test/dashboard-process.test.ts',
    title: 'on an address that others reach, without TLS -> refused, with what to do',
    file: 'src/main/dashboard/process.ts',
    was: 'if (tls === undefined && !isLoopbackHost(listen.host))',
    became: "if (tls === undefined && listen.host === '')",
  },
];
