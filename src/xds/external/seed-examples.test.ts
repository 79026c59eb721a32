// The examples of the founding document, minimally repaired, give what its text says.

import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { MeshExternalService } from '../../external/kinds/mesh-external-service.ts';
import { externalServiceErrors } from '../../external/rules/validation/external-service.ts';
import { createAuthority } from '../../external/testing/pem.ts';
import { firstAsItStands, firstRepaired, httpbin, kafka, lambda, mongo } from '../../external/testing/seed-examples.ts';
import { externalResources } from './generate.ts';
import { testInput } from './testing/agreement.ts';

const read = (text: string) => parse(text) as MeshExternalService;
const authority = createAuthority();
const client = authority.issue({ kind: 'client' });
const secrets = (_name: string, key: string) => {
  const pems = { 'ca.crt': authority.certificate, 'tls.crt': client.certificate, 'tls.key': client.key };
  return Buffer.from(pems[key as keyof typeof pems] ?? '').toString('base64');
};
const generate = (text: string) =>
  externalResources({
    ...testInput,
    secrets,
    place: { clusterset: 'default', cluster: 'east-1' },
    services: [read(text)],
  });
const clusters = (text: string) =>
  generate(text).flatMap(({ type, name }) =>
    type === 'cluster' && !/^(blackhole|passthrough)$/.test(name) ? [name] : [],
  );

describe('examples of the seed', () => {
  test('[004-01] the first as it stands -> refused at destination.extension, all its other mistakes at once', () => {
    expect(externalServiceErrors(read(firstAsItStands)).map(({ field }) => field)).toEqual([
      'spec.destination.extension',
      'spec.destination.endpoints[2].address',
      'spec.destination.tls.caCert.inline',
      'spec.destination.tls.clientCert.secret',
      'spec.destination.tls.clientKey.secret',
    ]);
  });

  test('[004-01] the first, repaired -> all four matches lead to its endpoints over TLS, unix socket included', () => {
    expect(externalServiceErrors(read(firstRepaired))).toEqual([]);
    expect(clusters(firstRepaired)).toEqual(['example_80_dns', 'example_80_static']);
    const text = JSON.stringify(generate(firstRepaired));
    for (const part of ['"1.1.1.1"', '"port_value":12345', '"example.com"', '/run/example.sock', 'TLSv1_2', 'TLSv1_3'])
      expect(text).toContain(part);
    for (const part of ['242.0.0.1', 'httpbin.com', '10.1.1.0', '192.168.0.1']) expect(text).toContain(part);
    // skip: true, so that no name is checked; the chain still is.
    expect(text).not.toContain('match_typed_subject_alt_names');
    expect(text).toContain('external:example:ca');
  });

  test('[004-38, 004-39, 004-16] httpbin -> clusters httpbin_80 and httpbin_443, the first with HTTP/2', () => {
    expect(clusters(httpbin)).toEqual(['httpbin_443', 'httpbin_80']);
    const cluster = generate(httpbin).find(({ type, name }) => type === 'cluster' && name === 'httpbin_80');
    expect(JSON.stringify(cluster?.body)).toContain('explicit_http_config":{"http2_protocol_options"');
  });

  test('[004-41] the Lambda example -> its cluster and the ARN on its route', () => {
    expect(clusters(lambda)).toEqual(['example_80']);
    const withVip = {
      ...read(lambda),
      status: { vips: [{ ip: '242.0.0.1', type: 'Kuma', hostname: 'example.ext.svc.local' }] },
    };
    const input = { ...testInput, place: { clusterset: 'default', cluster: 'east-1' }, services: [withVip] };
    const routes = externalResources(input).filter(({ type }) => type === 'route');
    expect(JSON.stringify(routes)).toContain('arn:aws:lambda:us-west-2:123456789012:function:my-function');
  });

  test('[004-45] mongo -> both endpoints behind the virtual IP of its status', () => {
    expect(clusters(mongo)).toEqual(['mongo_27017']);
    const text = JSON.stringify(generate(mongo));
    for (const part of ['242.0.0.1', '10.0.0.1', '10.0.0.2']) expect(text).toContain(part);
  });

  test('[004-17, 004-48] kafka -> the wildcard, with Passthrough as its default', () => {
    expect(externalServiceErrors(read(kafka))).toEqual([]);
    expect(clusters(kafka)).toEqual(['kafka_9092']);
    expect(JSON.stringify(generate(kafka))).toContain('"*.eu-west-3.aws.cloud"');
    const regular = {
      ...read(kafka),
      spec: { ...read(kafka).spec, destination: { type: 'Regular', endpoints: [{ address: 'a.b' }] } },
    };
    expect(externalServiceErrors(regular as MeshExternalService)[0]?.message).toContain(
      'only possible with destination type Passthrough',
    );
  });
});
