// The text of a kubeconfig with one cluster, one user and one context, all three named after the home, so that several can
// be merged. Pure; who keeps the file is pki.ts. It is written and read at every start, always in this one form: that needs
// no YAML library.

import { parseServers } from '../../base/http.ts';

export interface KubeconfigContent {
  /** `https://host:port`; several with commas between them if the home has several processes. */
  readonly server: string;
  /** Name of cluster, user and context. */
  readonly name: string;
  readonly certificateAuthority: string;
  readonly clientCertificate: string;
  readonly clientKey: string;
}

export function formatKubeconfig(content: KubeconfigContent): string {
  const name = scalar(content.name);
  const { server, otherServers = [] } = parseServers(content.server);
  return `apiVersion: v1
kind: Config
clusters:
  - name: ${name}
    cluster:
      server: ${scalar(server)}
      certificate-authority-data: ${base64(content.certificateAuthority)}
${others(otherServers)}users:
  - name: ${name}
    user:
      client-certificate-data: ${base64(content.clientCertificate)}
      client-key-data: ${base64(content.clientKey)}
contexts:
  - name: ${name}
    context:
      cluster: ${name}
      user: ${name}
current-context: ${name}
`;
}

/** What clients of Portolan read; others use the first server alone. */
function others(servers: readonly string[]): string {
  if (servers.length === 0) return '';
  const lines = servers.map((server) => `            - ${scalar(server)}\n`);
  return `      extensions:
        - name: portolan.dev/servers
          extension:
            servers:
${lines.join('')}`;
}

/** Parses the output of formatKubeconfig; undefined for any other text. */
export function parseKubeconfig(text: string): KubeconfigContent | undefined {
  try {
    const content: KubeconfigContent = {
      server: [fieldOf(text, 'server'), ...otherServersOf(text)].map(plainScalar).join(','),
      name: plainScalar(fieldOf(text, 'cluster')),
      certificateAuthority: plain(fieldOf(text, 'certificate-authority-data')),
      clientCertificate: plain(fieldOf(text, 'client-certificate-data')),
      clientKey: plain(fieldOf(text, 'client-key-data')),
    };
    return formatKubeconfig(content) === text ? content : undefined;
  } catch {
    return undefined;
  }
}

function fieldOf(text: string, name: string): string {
  return new RegExp(`^ +${name}: (.+)$`, 'm').exec(text)?.[1] ?? '';
}

function otherServersOf(text: string): string[] {
  return [...text.matchAll(/^ {12}- (.+)$/gm)].map(([, server = '']) => server);
}

/** Plain where YAML cannot take it for anything but a string; a JSON string is one in YAML too. */
function scalar(text: string): string {
  return /^[a-z][\w./@-]*(:[\w./@[\]:-]*)?$/i.test(text) && !yamlWords.test(text) ? text : JSON.stringify(text);
}

const yamlWords = /^(null|true|false|yes|no|on|off|y|n)$/i;

function plainScalar(written: string): string {
  return written.startsWith('"') ? JSON.parse(written) : written;
}

function base64(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64');
}

function plain(encoded: string): string {
  return Buffer.from(encoded, 'base64').toString('utf8');
}
