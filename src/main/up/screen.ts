// The last lines of the start of `portolan up`: what to type next.

import { portolanPath } from '../process.ts';

export function upScreen(server: string, kubeconfig: string): string {
  return `
Portolan: one cluster is ready, its home is at ${server}

In another terminal:
  export KUBECONFIG=${kubeconfig}
  kubectl get namespaces
  ${portolanPath()} register default/web --address 127.0.0.1 --port 8080 --check tcp
  kubectl get services,endpointslices
  kubectl explain serviceexport.status
  kubectl api-resources

All data is in the folder of that kubeconfig. Ctrl-C stops everything; the data stays.
`;
}
