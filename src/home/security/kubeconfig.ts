// The text of a kubeconfig with one cluster, one user and one context. Pure; who keeps the file is pki.ts. It is written
// and read at every start, always in this one form: that needs no YAML library.

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
  const cluster = scalar(content.clusterName);
  const user = scalar(content.userName);
  const context = scalar(`${content.userName}@${content.clusterName}`);
  return `apiVersion: v1
kind: Config
clusters:
  - name: ${cluster}
    cluster:
      server: ${scalar(content.server)}
      certificate-authority-data: ${base64(content.certificateAuthority)}
users:
  - name: ${user}
    user:
      client-certificate-data: ${base64(content.clientCertificate)}
      client-key-data: ${base64(content.clientKey)}
contexts:
  - name: ${context}
    context:
      cluster: ${cluster}
      user: ${user}
current-context: ${context}
`;
}

/** Parses the output of formatKubeconfig; undefined for any other text. */
export function parseKubeconfig(text: string): KubeconfigContent | undefined {
  try {
    const content: KubeconfigContent = {
      server: plainScalar(fieldOf(text, 'server')),
      clusterName: plainScalar(fieldOf(text, 'cluster')),
      userName: plainScalar(fieldOf(text, 'user')),
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
