// The Secrets that peering keeps in its home: the certificate of this mesh for its peers, with the roots beside it, and the
// authority that issued it unless another one does.

import { peeringAuthoritySecret, peeringCertificateSecret } from '../../kube/objects/ours.ts';

export const certificateSecret = peeringCertificateSecret;
export const authoritySecret = peeringAuthoritySecret;
