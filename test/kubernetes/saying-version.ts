// An API server that states another version: a build from a development tree states none, and old ones are not at hand.

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:https';
import { join } from 'node:path';
import { freePort } from '../support/free-port.ts';
import { type KubernetesApiServer, kubeconfigText } from './api-server.ts';

export async function sayingVersion(
  api: KubernetesApiServer,
  { minor, directory }: { readonly minor: string; readonly directory: string },
) {
  const [key, certificate] = [join(directory, 'version.key'), join(directory, 'version.crt')];
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', certificate, '-days', '1'],
      ...['-subj', '/CN=version', '-addext', 'subjectAltName=IP:127.0.0.1'],
    ],
    { stdio: 'ignore' },
  );
  const port = await freePort();
  const server = createServer({ key: readFileSync(key), cert: readFileSync(certificate) }, (incoming, outgoing) => {
    if (incoming.url?.split('?')[0] === '/version')
      return void outgoing.end(JSON.stringify({ major: '1', minor, gitVersion: `v1.${minor}.0` }));
    const { method, headers, url } = incoming;
    const to = request(`${api.server}${url}`, { method, headers, rejectUnauthorized: false }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(to);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const kubeconfig = join(directory, 'version.kubeconfig');
  const authority = readFileSync(certificate, 'utf8');
  writeFileSync(kubeconfig, kubeconfigText({ server: `https://127.0.0.1:${port}`, authority }, 'admin-token'));
  return { kubeconfig, stop: () => server.close() };
}
