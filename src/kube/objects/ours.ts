// The names that everything of ours has in common, in every home. Pure.

/** Where our own objects lie. */
export const systemNamespace = 'portolan-system';

/** Where the Secrets lie that external services name: nothing else does, so that the right to read them gives no more. */
export const externalNamespace = 'portolan-external';

export const managedByLabel = 'app.kubernetes.io/managed-by';
export const managerName = 'portolan';

export function isOurs(object: { readonly metadata: { readonly labels?: Record<string, string> } }): boolean {
  return object.metadata.labels?.[managedByLabel] === managerName;
}
/** The ConfigMap of stub zones that federations posted. */
export const stubZonesName = 'portolan-stub-zones';
