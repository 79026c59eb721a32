// The short screen at the end of the demo's start: what there is, and lines to try that work as printed.

import type { Demo } from './part.ts';

export function screen(demo: Demo, options: { readonly directory: string; readonly portolan: string }): string {
  const member = (id: string) => demo.clusters.find(({ cluster }) => cluster.id === id);
  const kubeconfig = (id: string) => member(id)?.home.kubeconfig ?? '';
  const dns = (id: string) => member(id)?.resolver.port ?? 0;
  const backend = member('east')?.backends.find(({ service }) => service === 'db');
  return `
Portolan: a broker, three clusters and a second company are ready. Look at them:

  ${demo.dashboard.url}/#token=${demo.dashboard.token}

In another terminal, try

  what is exported, and imported elsewhere
    kubectl --kubeconfig ${kubeconfig('east')} get serviceexports -n shop
    kubectl --kubeconfig ${kubeconfig('south')} get serviceimports -n shop

  the same names from anywhere: one address for all clusters, or every endpoint of a headless service
    dig @127.0.0.1 -p ${dns('west')} checkout.shop.svc.clusterset.local +short
    dig @127.0.0.1 -p ${dns('west')} db.shop.svc.clusterset.local +short

  one address for the service, served by west's proxy: ask a few times, and each cluster answers in turn
    curl -s http://${demo.proxy.ip}:${demo.proxy.port}/
    ${options.portolan} test connectivity shop/checkout --admin ${demo.proxy.admin} --dns 127.0.0.1:${dns('west')}

  the same service, nearest first: west's own endpoints, then those of its region, then any; until the policy is deleted
    echo '${nearestFirst}' | kubectl --kubeconfig ${kubeconfig('west')} apply -f -
    curl -s http://${demo.proxy.ip}:${demo.proxy.port}/?nearest

  an endpoint in east with its port, and what answers there
    dig @127.0.0.1 -p ${dns('west')} _http._tcp.db.shop.svc.clusterset.local SRV +short
    curl -s http://${backend?.address}:${backend?.port}/

  a federated name, nearest first: west's own address is the clusterset IP that its proxy serves, south has no proxy and
  leads to its own load balancer; both answer
    dig @127.0.0.1 -p ${dns('west')} checkout.shop.world.svc.federation +short
    dig @127.0.0.1 -p ${dns('south')} checkout.shop.world.svc.federation +short
    curl -s http://$(dig @127.0.0.1 -p ${dns('west')} checkout.shop.world.svc.federation +short | head -1):8080/
    curl -s http://$(dig @127.0.0.1 -p ${dns('south')} checkout.shop.world.svc.federation +short | head -1):8080/

  addresses that nothing serves, as doctor finds them: south has no proxy
    ${options.portolan} doctor --kubeconfig ${kubeconfig('south')}

  the federation behind it, and which resolvers were told of it
    kubectl --kubeconfig ${demo.broker.home.kubeconfig} describe federation world -n demo

  why an answer is what it is: what stands behind each record, what was left out
    ${options.portolan} dig db.shop.svc.clusterset.local --from south --dir ${options.directory}
    ${options.portolan} dig checkout.shop.world.svc.federation --from west --dir ${options.directory}

  two clusters that disagree, and who won
    kubectl --kubeconfig ${kubeconfig('west')} describe serviceexport cart -n shop

  an export for west alone: an address in west, nothing in south
    dig @127.0.0.1 -p ${dns('west')} reports.shop.svc.clusterset.local +short
    dig @127.0.0.1 -p ${dns('south')} reports.shop.svc.clusterset.local +short

  another company, acme: it shares one service with west by peering, under acme's own name
    ${options.portolan} peer list --kubeconfig ${kubeconfig('west')}
    ${options.portolan} peer services acme --kubeconfig ${kubeconfig('west')}
    dig @127.0.0.1 -p ${dns('west')} ${demo.neighbour.hostname} +short

  a service outside every mesh that speaks TLS: west gives it a name, a virtual IP and its authority
    kubectl --kubeconfig ${kubeconfig('west')} get meshexternalservices -n portolan-system
    dig @127.0.0.1 -p ${dns('west')} ${demo.outside.hostname} +short
    ${options.portolan} explain connection --to ${demo.outside.ip}:${demo.outside.port} --protocol http --kubeconfig ${kubeconfig('west')}
${envoyLines(demo)}
  all of it at a glance
    ${options.portolan} status --kubeconfig ${kubeconfig('west')}

  a cluster that is cut off: its addresses are gone about 6 s later, and back soon after it is healed; requests to the
  clusterset IP are answered all the time
    ${options.portolan} demo break east --dir ${options.directory}
    curl -s http://${demo.proxy.ip}:${demo.proxy.port}/
    dig @127.0.0.1 -p ${dns('west')} db.shop.svc.clusterset.local +short
    ${options.portolan} demo heal east --dir ${options.directory}

Addresses and files are in ${options.directory}/demo.json. Ctrl-C stops everything.
`;
}

/** Policy for the service that all clusters have, for clients in west. */
const nearestFirst = JSON.stringify({
  apiVersion: 'portolan.dev/v1alpha1',
  kind: 'ServiceImportPolicy',
  metadata: { name: 'nearest' },
  spec: {
    services: ['checkout'],
    clusters: [{ clusters: ['west'] }, { regions: ['north'] }],
  },
});

function envoyLines({ envoys, neighbour, outside }: Demo): string {
  const title = 'both through an Envoy in west: mutual TLS to the ingress of acme, TLS to the server outside';
  if (envoys === undefined)
    return `\n  with envoy on PATH, or by npm start -- --with-envoy, the demo also connects to both, over TLS that Envoy starts\n`;
  const curl = ({ ip, port }: { readonly ip: string; readonly port: number }) => `    curl -s http://${ip}:${port}/\n`;
  return `\n  ${title}\n${curl(neighbour)}${curl(outside)}`;
}
