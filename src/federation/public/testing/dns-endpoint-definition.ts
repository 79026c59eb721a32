// The kind DNSEndpoint as far as tests need it; external-dns brings its own definition.

export const dnsEndpointDefinition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: 'dnsendpoints.externaldns.k8s.io',
    annotations: { 'api-approved.kubernetes.io': 'https://github.com/kubernetes-sigs/external-dns/pull/2007' },
  },
  spec: {
    group: 'externaldns.k8s.io',
    names: { kind: 'DNSEndpoint', listKind: 'DNSEndpointList', plural: 'dnsendpoints', singular: 'dnsendpoint' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1alpha1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
              status: { type: 'object', properties: { observedGeneration: { type: 'integer', format: 'int64' } } },
            },
          },
        },
      },
    ],
  },
};
