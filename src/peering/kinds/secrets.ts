// The Secrets that peering keeps in the system namespace of its home: the certificate of this mesh for its peers,
// with the roots beside it, and the authority that issued it unless another one does.

export const certificateSecret = 'portolan-peering-tls';
export const authoritySecret = 'portolan-peering-authority';
