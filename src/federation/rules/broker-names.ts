// Names of what a federation's authority keeps at the broker, in the namespace of the clusterset. Pure.

/** The Lease of the leading authority. */
export function federationLeaseName(federation: string): string {
  return `portolan-federation.${federation}`;
}

/** The Secret with the authority of its certificates. */
export function federationAuthoritySecret(federation: string): string {
  return `portolan-federation-authority.${federation}`;
}

/** The ConfigMap that notes to which resolvers the zone was posted. */
export function postedNotesName(federation: string): string {
  return `portolan-stub-zones.${federation}`;
}

/** The ConfigMap that notes which public zones have records of it. */
export function publishedNotesName(federation: string): string {
  return `portolan-public-zones.${federation}`;
}
