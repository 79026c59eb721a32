// Verifies AWS Signature Version 4 of a request, by the published description of it.

import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

export const testCredentials = { accessKey: 'AKIDEXAMPLE', secretKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };

/** `good`, or what is wrong. */
export function verifySignature(request: IncomingMessage, body: Buffer): string {
  const header = request.headers.authorization ?? '';
  const parts = /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(header);
  if (parts === null) return `no signature: ${header}`;
  const [, credential = '', signedHeaders = '', signature = ''] = parts;
  const [accessKey, date = '', region = '', service = ''] = credential.split('/');
  if (accessKey !== testCredentials.accessKey) return 'unknown access key';
  const canonical = [
    request.method,
    // Each segment is encoded once more than it is in the request.
    (request.url ?? '').split('?')[0]!.split('/').map(encodeSegment).join('/'),
    '',
    ...signedHeaders.split(';').map((name) => `${name}:${String(request.headers[name] ?? '').trim()}`),
    '',
    signedHeaders,
    request.headers['x-amz-content-sha256'] ?? sha256(body),
  ].join('\n');
  if ((request.headers['x-amz-content-sha256'] ?? sha256(body)) !== sha256(body)) return 'the body is another one';
  const scope = `${date}/${region}/${service}/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', request.headers['x-amz-date'], scope, sha256(Buffer.from(canonical))].join('\n');
  let key: Buffer = Buffer.from(`AWS4${testCredentials.secretKey}`);
  for (const part of [date, region, service, 'aws4_request']) key = createHmac('sha256', key).update(part).digest();
  const wanted = createHmac('sha256', key).update(text).digest();
  const isSame = timingSafeEqual(wanted, Buffer.from(signature, 'hex'));
  return isSame ? 'good' : `another one over ${JSON.stringify(canonical)}`;
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function encodeSegment(segment: string): string {
  return encodeURIComponent(segment).replaceAll(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
