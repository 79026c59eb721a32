// Names of what lets federations reach a cluster's resolvers: the authority of their certificates, made when the cluster
// joins, and the annotation by which a resolver reports its endpoint. Pure.

/** A Secret of the home, in the system namespace. */
export const resolverAuthoritySecret = 'portolan-resolver-authority';
/** In the certificate of that authority. */
export const resolverAuthorityName = 'Portolan resolvers';
/** On the Lease of a resolver: the URL at which it takes stub zones. */
export const stubEndpointAnnotation = 'portolan.dev/stub-endpoint';
