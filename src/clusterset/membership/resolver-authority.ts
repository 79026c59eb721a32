// Names of what lets federations reach a cluster's resolvers: the authority of their certificates, made when the cluster
// joins, and the annotations by which a resolver reports its endpoint and that authority. Pure.

/** A Secret of the home, in the system namespace. */
export const resolverAuthoritySecret = 'portolan-resolver-authority';
/** In the certificate of that authority. */
export const resolverAuthorityName = 'Portolan resolvers';
/** On the Lease of a resolver: the URL at which it takes stub zones. */
export const stubEndpointAnnotation = 'portolan.dev/stub-endpoint';
/** Beside it: base64 of PEM, the certificate of the authority. The agent need not read the Secret, which has the key. */
export const stubAuthorityAnnotation = 'portolan.dev/stub-authority';
