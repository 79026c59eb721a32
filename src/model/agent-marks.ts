// The labels by which what an agent makes in its home is told from what people make: so that leaving takes the one away
// and keeps the other. Pure.

/** On ServiceExports that a ServiceExportPolicy brought about. */
export const policyExportLabel = 'portolan.dev/export-policy';

/** On Services and ServiceExports that a FederatedService placed. */
export const placedLabel = 'portolan.dev/federated-service';

/** Value of the managed-by label of EndpointSlices behind imports. */
export const importedSliceManager = 'portolan.dev';

/** Conditions that an agent writes on a ServiceExport. */
export const exportConditionTypes: readonly string[] = ['Valid', 'Ready', 'Conflict'];
