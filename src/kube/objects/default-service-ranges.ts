// Where an embedded home takes the addresses of its Services from unless it is told otherwise. A Kubernetes made with
// kubeadm has the first of them too.

export const defaultServiceRanges: readonly string[] = ['10.96.0.0/12', 'fd00:10:96::/112'];
