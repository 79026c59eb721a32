// The text of a kubeconfig with one cluster, one user and one context, all three named after the home, so that several can
// be merged. Pure; who keeps the file is pki.ts. It is written and read at every start, always in this one form: that needs
// no YAML library.

export interface KubeconfigContent {
  /** `https://host:port`. */
  readonly server: string;
  /** Name of cluster, user and context. */
  readonly name: string;
  readonly certificateAuthority: string;
  readonly clientCertificate: string;
  readonly clientKey: string;
}

export function formatKubeconfig(content: KubeconfigContent): string {
  const name = scalar(content.name);
  return `apiVersion: v1
kind: Config
clusters:
  - name: ${name}
    cluster:
      server: ${scalar(content.server)}
      certificate-authority-data: ${base64(content.certificateAuthority)}
users:
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

/** Parses the output of formatKubeconfig; undefined for any other text. */
export function parseKubeconfig(text: string): KubeconfigContent | undefined {
  try {
    const content: KubeconfigContent = {
      server: plainScalar(fieldOf(text, 'server')),
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
