// Random valid sets of external services, with TLS, checked by a real Envoy. `npm run external:cases` runs many.

import { createAuthority } from '../../src/external/testing/pem.ts';
import { externalResources } from '../../src/xds/external/generate.ts';
import { testInput } from '../../src/xds/external/testing/agreement.ts';
import { randomOf, randomServices } from '../../src/xds/external/testing/random-rules.ts';
import { validateByEnvoy } from './envoy.ts';

export async function validateRandomSets(directory: string, seed: number, sets: number): Promise<string> {
  const random = randomOf(seed);
  const authority = createAuthority();
  const client = authority.issue({ kind: 'client' });
  const secrets = { 'ca.crt': authority.certificate, 'tls.crt': client.certificate, 'tls.key': client.key };
  const read = (_name: string, key: string) => {
    const text = secrets[key as keyof typeof secrets];
    return text === undefined ? undefined : Buffer.from(text).toString('base64');
  };
  const common = 'caCert: { secret: pki }, clientCert: { secret: pki }, clientKey: { secret: pki }';
  const named = `${common}, verification: { subjectAltNames: [a.b, "spiffe://a/b", 10.0.0.1] }`;
  for (let set = 0; set < sets; set += 1) {
    const services = randomServices(random, {
      count: 1 + Math.floor(random() * 12),
      tls: set % 2 === 0 ? named : common,
    });
    const resources = externalResources({ ...testInput, secrets: read, services });
    const wrong = await validateByEnvoy(directory, resources);
    if (wrong !== '') return `seed ${seed}, set ${set}: ${wrong.slice(0, 4000)}`;
  }
  return '';
}
