// The names that everything of ours has in common, in every home. Pure.

/** Where our own objects lie. */
export const systemNamespace = 'portolan-system';

/** Where the Secrets lie that external services name: nothing else does, so that the right to read them gives no more. */
export const externalNamespace = 'portolan-external';

/** Where an agent keeps its keys for sealed exports. No account lies there: see below. */
export const sealingNamespace = 'portolan-sealing';

/**
 * Where peering and the discovery server keep Secrets. No account with rights lies there: whoever may create Secrets in a
 * namespace can get tokens of its accounts.
 */
export const peeringNamespace = 'portolan-peering';
export const xdsNamespace = 'portolan-xds';
/** Secrets of peering: its certificate for peers with the roots beside it, and the authority that issued it. */
export const peeringCertificateSecret = 'portolan-peering-tls';
export const peeringAuthoritySecret = 'portolan-peering-authority';

export const managedByLabel = 'app.kubernetes.io/managed-by';
export const managerName = 'portolan';

export function isOurs(object: { readonly metadata: { readonly labels?: Record<string, string> } }): boolean {
  return object.metadata.labels?.[managedByLabel] === managerName;
}
/** The ConfigMap of stub zones that federations posted. */
export const stubZonesName = 'portolan-stub-zones';

/** The end of the version that an embedded home answers: nothing there routes the cluster IPs of its Services. */
const embeddedVersion = '-portolan';

/** As `GET /version` of the embedded home answers it. */
export const embeddedGitVersion = `v1.35.0${embeddedVersion}`;

export function isEmbeddedHome({ gitVersion }: { readonly gitVersion?: unknown }): boolean {
  return typeof gitVersion === 'string' && gitVersion.endsWith(embeddedVersion);
}
/** Tokens for this audience are good at discovery servers alone; no API server takes them. */
export const proxyTokenAudience = 'portolan-xds';
/** ConfigMap with the roots of the discovery server, for the Pods of Envoys. */
export const xdsRootsName = 'portolan-xds-roots';
/** Secret with the roots that sign for this cluster's gateways and proxies; the discovery server reads it alone. */
export const gatewayAuthoritySecret = 'portolan-gateway-authority';
/** Secret with the authority of the discovery server, which reads it alone. */
export const xdsAuthoritySecret = 'portolan-xds-authority';

/** How long a released virtual address is kept for its owner, unless a ClusterSet says otherwise. */
export const addressHoldMs = 24 * 3_600_000;
