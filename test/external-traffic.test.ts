// Real connections through a real Envoy in a network namespace: what each kind of rule does with traffic.

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { MeshExternalService } from '../src/external/kinds/mesh-external-service.ts';
import { externalService } from '../src/external/testing/services.ts';
import { describeWith } from './support/counterparts.ts';
import { type ExternalNamespace, type NamespaceOptions, startExternalNamespace } from './support/external-namespace.ts';

type Files = Parameters<NamespaceOptions['services']>[0];
const json = (text: string) => JSON.stringify(text);

function vip(name: string, ip: string, match: string, destination: string): MeshExternalService {
  const hostname = `${name}.ext`;
  const spec = `{ match: [{ type: InternalVIP, value: ${hostname}, ${match} }], destination: ${destination} }`;
  return externalService(spec, { name, vips: { [hostname]: ip } });
}

const regular = (endpoints: string, tls = '') =>
  `{ type: Regular, endpoints: [${endpoints}]${tls && `, tls: { ${tls} }`} }`;

function allServices({ ca, caFile, socket, client }: Files): MeshExternalService[] {
  const trusted = `caCert: { inlineString: ${json(ca)} }`;
  const pair = `clientCert: { inlineString: ${json(client.certificate)} }, clientKey: { inlineString: ${json(client.key)} }`;
  const lambda = `{ arn: "arn:aws:lambda:us-west-2:123456789012:function:my-function", endpoint: "lambda.test:8444", caFile: ${json(caFile)}, payloadPassthrough: true }`;
  return [
    vip('web', '242.0.0.1', 'port: 80, protocol: http', regular('{ address: 10.50.0.1 }')),
    vip('origin', '242.0.0.2', 'port: 80, protocol: http', regular('{ address: backend.test, port: 8443 }', trusted)),
    vip(
      'system',
      '242.0.0.15',
      'port: 80, protocol: http',
      regular('{ address: backend.test, port: 8443 }', 'caCert: { system: true }'),
    ),
    vip('wrong', '242.0.0.3', 'port: 80, protocol: http', regular('{ address: wrong.test, port: 8443 }', trusted)),
    vip(
      'literal',
      '242.0.0.4',
      'port: 80, protocol: http',
      regular('{ address: 10.50.0.6, port: 8443 }', `${trusted}, ${pair}`),
    ),
    vip(
      'given',
      '242.0.0.5',
      'port: 80, protocol: http',
      regular('{ address: wrong.test, port: 8443 }', `${trusted}, verification: { subjectAltNames: [backend.test] }`),
    ),
    vip(
      'misnamed',
      '242.0.0.14',
      'port: 80, protocol: http',
      regular('{ address: backend.test, port: 8443 }', `${trusted}, verification: { subjectAltNames: [other.test] }`),
    ),
    vip('sock', '242.0.0.6', 'port: 80, protocol: http', regular(`{ address: "unix://${socket}" }`)),
    vip('h2', '242.0.0.7', 'port: 80, protocol: http2', regular('{ address: 10.50.0.3 }')),
    vip('grpc', '242.0.0.8', 'port: 50051, protocol: grpc', regular('{ address: 10.50.0.3, port: 80 }')),
    vip('mysql', '242.0.0.9', 'port: 3306, protocol: tcp', regular('{ address: 10.50.0.8 }')),
    vip('lost', '242.0.0.10', 'port: 80, protocol: http', regular('{ address: nowhere.test }')),
    vip(
      'mixed',
      '242.0.0.11',
      'port: 80, protocol: http',
      regular(`{ address: backend.test, port: 80 }, { address: "unix://${socket}" }`),
    ),
    vip(
      'fn',
      '242.0.0.12',
      'port: 80, protocol: http',
      `{ type: Extension, extension: { type: Lambda, config: ${lambda} } }`,
    ),
    vip('secure', '242.0.0.13', 'port: 443, protocol: tls', regular('{ address: 10.50.0.4 }')),
    externalService(
      `{ match: [{ type: CIDR, value: 10.60.0.0/24, port: 80, protocol: http }, { type: Domain, value: fn.test, port: 80, protocol: http }], destination: { type: Extension, extension: { type: Lambda, config: ${lambda} } } }`,
      { name: 'fn-net' },
    ),
    externalService('{ match: [{ type: Domain, value: api.example.test, port: 443, protocol: tls }] }', {
      name: 'api',
    }),
    externalService('{ match: [{ type: Domain, value: "*.wild.test", port: 443, protocol: tls }] }', { name: 'wild' }),
    externalService(
      `{ match: [{ type: Domain, value: httpbin.test, port: 80, protocol: http }], destination: ${regular('{ address: 10.50.0.2 }')} }`,
      { name: 'httpbin' },
    ),
    externalService(
      `{ match: [{ type: Domain, value: unready.test, port: 80, protocol: http }, { type: IP, value: 10.50.0.7, port: 9000 }], destination: ${regular('{ address: backend.test, port: 8443 }', 'caCert: { secret: gone }')} }`,
      { name: 'unready' },
    ),
    externalService(
      `{ match: [{ type: CIDR, value: 10.60.0.0/24, port: 9000 }], destination: ${regular('{ address: 10.50.0.7 }')} }`,
      { name: 'net' },
    ),
  ];
}

describeWith(['envoy', 'ip', 'nft'], 'external services, traffic', () => {
  let outside: ExternalNamespace;
  let services: MeshExternalService[] = [];
  beforeAll(async () => {
    outside = await startExternalNamespace({
      services: (files) => {
        services = allServices(files);
        return services;
      },
    });
  }, 60_000);
  afterAll(() => outside?.stop());
  const statistic = async (name: string) => {
    const text = await outside.envoy.admin(`/stats?filter=${name.replaceAll('.', '\\.').replaceAll('[', '\\[')}`);
    return Number(/: (\d+)$/m.exec(text)?.[1] ?? -1);
  };
  const get = (to: string, host?: string) => outside.ask({ do: 'http', to, ...(host === undefined ? {} : { host }) });

  test('[004-15] by virtual IP over http -> its endpoint, and the mark of the rule stays inside', async () => {
    expect(await get('242.0.0.1:80', 'web.ext')).toBe('200 web1 host=web.ext rule=none client=none http=1.1');
  });

  test('[004-07, 004-19, 004-49] by SNI, exactly and by wildcard -> the original server; the rule is the one meant', async () => {
    expect(await outside.ask({ do: 'tls', to: '10.50.0.4:443', sni: 'api.example.test' })).toBe(
      'api sni=api.example.test',
    );
    expect(await outside.ask({ do: 'tls', to: '10.50.0.5:443', sni: 'x.y.wild.test' })).toBe('wild sni=x.y.wild.test');
    const stats = await outside.envoy.admin('/stats?filter=upstream_cx_total');
    expect(stats).toContain('cluster.api_443.upstream_cx_total: 1');
    expect(stats).toContain('cluster.wild_443.upstream_cx_total: 1');
  });

  test('[004-07, 004-05] by Host -> its endpoint; another Host at the same address -> as without', async () => {
    expect(await get('10.50.0.1:80', 'httpbin.test')).toContain('200 web2 host=httpbin.test');
    expect(await get('10.50.0.1:80', 'HTTPBIN.test:80')).toContain('200 web2');
    expect(await get('10.50.0.1:80', 'other.test')).toContain('200 web1 host=other.test rule=none');
  });

  test.each<Record<string, string>>([
    {},
    { 'x-forwarded-proto': 'https', 'x-portolan-forwarded-proto': 'forged', 'user-agent': 'probe' },
  ])('a Host that no rule names, with the headers %j -> these arrive, and no other', async (headers) => {
    const answer = await outside.ask({ do: 'http', to: '10.50.0.1:80', host: 'echo.test', headers });
    const { 'x-portolan-forwarded-proto': _own, ...sent } = headers;
    expect(JSON.parse(answer.replace(/^200 /, ''))).toEqual({ host: 'echo.test', ...sent });
  });

  test('TLS origination without the secret of its CA -> closed, and nothing reaches the address as plain text', async () => {
    expect(await get('10.50.0.1:80', 'unready.test')).toMatch(/^503 /);
    expect(await outside.ask({ do: 'tcp', to: '10.50.0.7:9000', send: 'hello' })).not.toBe('hello');
  });

  test('[004-08] by CIDR over tcp -> its endpoint', async () => {
    expect(await outside.ask({ do: 'tcp', to: '10.60.0.77:9000', send: 'hello' })).toBe('hello');
  });

  test('[004-12] tls through a virtual IP -> passed on as it is', async () => {
    expect(await outside.ask({ do: 'tls', to: '242.0.0.13:443', sni: 'any.test' })).toBe('api sni=any.test');
  });

  test('[004-26, 004-30, 004-31, 004-32, 004-51] TLS origination: the right name, own or given -> answered; a wrong one -> refused', async () => {
    expect(await get('242.0.0.2:80', 'origin.ext')).toContain('200 backend host=backend.test');
    expect(await get('242.0.0.5:80', 'given.ext')).toContain('200 backend');
    expect(await get('242.0.0.3:80', 'wrong.ext')).toMatch(/^503 /);
    expect(await get('242.0.0.14:80', 'misnamed.ext')).toMatch(/^503 /);
    for (const name of ['wrong', 'misnamed'])
      expect(await statistic(`cluster.${name}_80.ssl.fail_verify_san`)).toBeGreaterThan(0);
  });

  test("TLS origination by the system's CAs -> verified by those of the proxy's own system", async () => {
    expect(await get('242.0.0.15:80', 'system.ext')).toContain('200 backend host=backend.test');
    expect(await statistic('cluster.system_80.ssl.handshake')).toBeGreaterThan(0);
  });

  test('[004-33] TLS origination to an address, with a client certificate -> both sides verified', async () => {
    expect(await get('242.0.0.4:80', 'literal.ext')).toContain('200 backend host=literal.ext rule=none client=leaf');
  });

  test('[004-23, 004-24, 004-25] to a unix socket -> answered; beside a hostname -> both share the load', async () => {
    expect(await get('242.0.0.6:80', 'sock.ext')).toContain('200 socket');
    const answers = new Set<string>();
    for (let turn = 0; turn < 30; turn += 1) answers.add((await get('242.0.0.11:80', 'm')).slice(0, 10));
    expect([...answers].some((text) => text.startsWith('200 socket'))).toBe(true);
    expect(answers.size).toBeGreaterThan(1);
  });

  test('[004-14, 004-16] http2 and grpc -> end to end', async () => {
    expect(await outside.ask({ do: 'http2', to: '242.0.0.7:80', host: 'h2.ext' })).toBe('200 h2 host=h2.ext');
    const grpc = await outside.ask({ do: 'http2', to: '242.0.0.8:50051', host: 'grpc.ext', isGrpc: true });
    expect(grpc).toBe('200 h2 host=grpc.ext grpc-status=0');
    // Bytes that nobody looked into would arrive too, but are no requests.
    for (const name of ['h2_80', 'grpc_50051']) expect(await statistic(`cluster.${name}.upstream_rq_200`)).toBe(1);
  });

  test('[004-50] a server that speaks first -> nobody waits for the client', async () => {
    expect(await outside.ask({ do: 'tcp', to: '242.0.0.9:3306' })).toBe('5.7 ready for you');
    const stats = await outside.envoy.admin('/stats?filter=downstream_pre_cx_timeout');
    expect(stats).not.toMatch(/downstream_pre_cx_timeout: [1-9]/);
  });

  test('a hostname that cannot be resolved -> held nobody up, its own requests fail', async () => {
    expect(await get('242.0.0.10:80', 'lost.ext')).toMatch(/^503 /);
  });

  test('a connection to the proxy itself -> closed, not sent round in circles', async () => {
    const before = await statistic('tcp.blackhole.downstream_cx_total');
    expect(await outside.ask({ do: 'tcp', to: '127.0.0.1:15002', send: 'hello' })).toMatch(/closed|ECONNRESET/);
    expect(await outside.ask({ do: 'tcp', to: '127.0.0.1:15001', send: 'hello to you' })).toMatch(/closed|ECONNRESET/);
    expect(await statistic('tcp.blackhole.downstream_cx_total')).toBe(before + 2);
  });

  test('[004-20, 004-41] the Lambda plugin -> invoked with a good signature', async () => {
    const good = /^200 signature=good path=\/2015-03-31\/functions\/arn.*my-function\/invocations body=\{"a":1\}$/;
    // By its virtual IP, by a range and by Host.
    for (const [to, host] of [
      ['242.0.0.12:80', 'fn.ext'],
      ['10.60.0.1:80', 'any.test'],
      ['10.50.0.1:80', 'fn.test'],
    ] as const)
      expect(await outside.ask({ do: 'http', to, host, body: '{"a":1}' })).toMatch(good);
  });

  test('a rule is added -> in force, and no other connection is dropped', async () => {
    await outside.ask({ do: 'open', to: '10.60.0.5:9000', name: 'bytes' });
    await outside.ask({ do: 'open', to: '10.50.0.4:443', name: 'tls', sni: 'api.example.test' });
    await outside.ask({ do: 'repeat', to: '242.0.0.1:80', host: 'web.ext', name: 'web' });
    const added = externalService(
      `{ match: [{ type: IP, value: 10.60.0.5, port: 9000 }, { type: Domain, value: new.test, port: 80, protocol: http }], destination: ${regular('{ address: 10.50.0.2, port: 80 }')} }`,
      { name: 'added' },
    );
    await outside.apply([...services, added]);
    await new Promise((resolve) => setTimeout(resolve, 2500));
    expect(await outside.ask({ do: 'say', name: 'bytes', text: 'still here' })).toBe('still here');
    expect(await outside.ask({ do: 'say', name: 'tls', text: 'still here' })).toBe('still here');
    expect(Object.keys(JSON.parse(await outside.ask({ do: 'until', name: 'web' })))).toEqual(['200 web1']);
    expect(await get('10.50.0.1:80', 'new.test')).toContain('200 web2');
  });

  test('endpoints change -> not one request fails', async () => {
    await outside.ask({ do: 'repeat', to: '242.0.0.1:80', host: 'web.ext', name: 'moving' });
    for (const address of ['10.50.0.2', '10.50.0.1', '10.50.0.2']) {
      const moved = vip('web', '242.0.0.1', 'port: 80, protocol: http', regular(`{ address: ${address} }`));
      await outside.apply([moved, ...services.slice(1)]);
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    const answers = Object.keys(JSON.parse(await outside.ask({ do: 'until', name: 'moving' })));
    expect(answers.sort()).toEqual(['200 web1', '200 web2']);
  });
});
