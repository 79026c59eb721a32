// The text of a kubeconfig with one cluster, one user and one context. Pure; who keeps the file is pki.ts.

import { parse, stringify } from 'yaml';

export interface KubeconfigContent {
  /** `https://host:port`. */
  readonly server: string;
  readonly clusterName: string;
  readonly userName: string;
  readonly certificateAuthority: string;
  readonly clientCertificate: string;
  readonly clientKey: string;
}

export function formatKubeconfig(content: KubeconfigContent): string {
  const { clusterName, userName } = content;
  const context = `${userName}@${clusterName}`;
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: clusterName,
        cluster: { server: content.server, 'certificate-authority-data': base64(content.certificateAuthority) },
      },
    ],
    users: [
      {
        name: userName,
        user: {
          'client-certificate-data': base64(content.clientCertificate),
          'client-key-data': base64(content.clientKey),
        },
      },
    ],
    contexts: [{ name: context, context: { cluster: clusterName, user: userName } }],
    'current-context': context,
  });
}

/** What formatKubeconfig wrote; undefined if the text is anything else. */
export function parseKubeconfig(text: string): KubeconfigContent | undefined {
  try {
    const config = parse(text) as WrittenKubeconfig;
    const { name: clusterName, cluster } = config.clusters[0];
    const { name: userName, user } = config.users[0];
    return {
      server: cluster.server,
      clusterName,
      userName,
      certificateAuthority: plain(cluster['certificate-authority-data']),
      clientCertificate: plain(user['client-certificate-data']),
      clientKey: plain(user['client-key-data']),
    };
  } catch {
    return undefined;
  }
}

interface WrittenKubeconfig {
  clusters: [{ name: string; cluster: { server: string; 'certificate-authority-data': string } }];
  users: [{ name: string; user: { 'client-certificate-data': string; 'client-key-data': string } }];
}

function base64(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64');
}

function plain(encoded: string): string {
  return Buffer.from(encoded, 'base64').toString('utf8');
}
