// A proxy asks its discovery server for a certificate. The key never leaves the machine; the server certifies its public
// half.

import { createPublicKey } from 'node:crypto';
import { readBody } from '../../base/http.ts';
import { errorText } from '../../base/log.ts';
import { type Credentials, isKeyOf } from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';
import { xdsServerName } from '../../xds/identity/authority.ts';
import type { CliDeps } from '../with-home.ts';

export interface CertificateRequest {
  /** Begins every error. */
  readonly command: string;
  /** What the server did, in an error. */
  readonly failure: string;
  readonly server: { readonly address: string; readonly authority: string };
  readonly path: string;
  /** Either a certificate that is still good, or a token. */
  readonly proof: Credentials | { readonly token: string };
}

export async function requestCertificate({ world }: CliDeps, request: CertificateRequest): Promise<Credentials> {
  const { command, failure, server, path, proof } = request;
  const key = generatePrivateKey();
  const publicKey = createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString();
  const transport = world.network.http({
    server: `https://${server.address}`,
    serverName: xdsServerName,
    certificateAuthority: server.authority,
    ...('token' in proof ? {} : { clientCertificate: proof.certificate, clientKey: proof.key }),
  });
  try {
    const headers = { 'content-type': 'application/json' };
    const asked = { publicKey, ...('token' in proof ? { token: proof.token } : {}) };
    const response = await transport.send({ method: 'POST', path, headers, body: Buffer.from(JSON.stringify(asked)) });
    const answer = JSON.parse(Buffer.from(await readBody(response.body)).toString('utf8')) as {
      certificate?: string;
      message?: string;
    };
    if (response.status !== 200) throw new Error(answer.message ?? `HTTP ${response.status}`);
    if (!isKeyOf(answer.certificate ?? '', key)) throw new Error('its certificate is not for our key');
    return { certificate: answer.certificate ?? '', key };
  } catch (cause) {
    throw new Error(`${command}: ${server.address} ${failure}: ${errorText(cause)}`, { cause });
  } finally {
    transport.close();
  }
}
