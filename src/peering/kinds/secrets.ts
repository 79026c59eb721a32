// The Secrets that peering keeps in the system namespace of its home: the certificate that this mesh shows to its peers,
// with the roots beside it, and the authority that issued it where nobody else does.

export const certificateSecret = 'portolan-peering-tls';
export const authoritySecret = 'portolan-peering-authority';
