// Faults of resolvers, authorities, peering, proxies, clocks, certificates and versions.

import { silentLog } from '../../src/base/log.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { meshExternalServiceType } from '../../src/external/kinds/mesh-external-service.ts';
import { watchAllAuthorities } from '../../src/federation/authority-watch.ts';
import { federationType } from '../../src/federation/kinds/federation.ts';
import { corednsRef } from '../../src/install/coredns/cluster-dns.ts';
import { configMapType } from '../../src/kube/objects/config-map.ts';
import { leaseType } from '../../src/kube/objects/lease.ts';
import { namespaceType } from '../../src/kube/objects/namespace.ts';
import type { AnyObject } from '../../src/kube/objects/object.ts';
import { systemNamespace } from '../../src/kube/objects/ours.ts';
import { secretType } from '../../src/kube/objects/secret.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { peerType } from '../../src/peering/kinds/peer.ts';
import { peerExportType } from '../../src/peering/kinds/peer-export.ts';
import { endingAnnotation, formatEnding } from '../../src/xds/identity/ending-certificates.ts';
import { setName } from '../clusterset.ts';
import { answeringPart, type MadeFault, objectThere, silentPart, thenWait } from './fault.ts';
import { certificate, partLease, ref } from './scene.ts';

const dayMs = 86_400_000;
const federation = { metadata: { name: 'world', namespace: setName }, spec: {} };
const explained = (address: string) => ({ rcode: 'NOERROR', records: [{ text: `A ${address}` }] });
const peer = (name: string) => ({
  metadata: { name, namespace: systemNamespace },
  spec: { address: 'peer.example:8008', trust: { domain: 'peer.example', bundle: 'PEM' } },
});

const rates = {
  metadata: { name: 'rates', namespace: systemNamespace },
  spec: {
    match: [{ type: 'InternalVIP', value: 'rates.bank.example', port: 443, protocol: 'tcp' }],
    destination: { type: 'Regular', endpoints: [{ address: '10.0.0.1' }] },
  },
};

export const partFaults: readonly MadeFault[] = [
  {
    fault: 'the resolver is gone',
    code: 'PTL0501',
    says: /dns on n1: it has not reported for/,
    doctorExit: 7,
    ...silentPart('dns'),
  },
  {
    fault: 'the resolver is cut off from its home',
    code: 'PTL0502',
    says: /dns on n1: it answers clusterset\.local from old data: the home is away/,
    doctorExit: 7,
    ...answeringPart(
      'dns',
      { stale: ['clusterset.local'], staleWhy: 'the home is away', ...explained('0.0.0.0') },
      { stale: [], ...explained('0.0.0.0') },
    ),
  },
  {
    fault: 'the disk of the resolver is full',
    code: 'PTL0506',
    says: /dns on n1: its names are not copied to disk: \/state\/names: ENOSPC/,
    doctorExit: 7,
    ...answeringPart(
      'dns',
      { copyProblem: '/state/names: ENOSPC: no space left on device, write', ...explained('0.0.0.0') },
      { copyProblem: '', ...explained('0.0.0.0') },
    ),
  },
  {
    fault: "the cluster's CoreDNS does not ask portolan-dns",
    code: 'PTL0508',
    says: /CoreDNS of kube-system: it has no server block for clusterset\.local/,
    doctorExit: 0,
    make: async ({ desk }) => {
      const metadata = { name: corednsRef.namespace };
      await desk.home.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata }).catch(() => {});
      const dns = { namespace: systemNamespace, name: 'portolan-dns' };
      const ports = [{ name: 'dns', port: 53, protocol: 'UDP' as const }];
      await desk.home.create(serviceType, { apiVersion: 'v1', kind: 'Service', metadata: dns, spec: { ports } });
      const data = { Corefile: '.:53 {\n}\n' };
      await desk.home.create(configMapType, { apiVersion: 'v1', kind: 'ConfigMap', metadata: corednsRef, data });
    },
    mend: ({ desk }) => desk.home.delete(configMapType, corednsRef),
  },
  {
    fault: 'the resolver gives another address',
    code: 'PTL0503',
    says: /checkout\.shop\.svc\.clusterset\.local \(shop\/checkout\) at dns on n1: it answers 0\.0\.0\.0, expected \d/,
    doctorExit: 7,
    ...answeringPart('dns', explained('0.0.0.0'), async ({ desk }) => {
      const { spec } = await desk.home.get<ServiceImport>(serviceImportType, ref);
      return explained(spec.ips![0]!);
    }),
  },
  {
    fault: 'a resolver was not told of the federation',
    code: 'PTL0504',
    says: /resolver of cluster west.*Pending: its Cluster names no resolver endpoint/,
    doctorExit: 7,
    conditions: {
      of: { at: 'broker', type: federationType, ref: federation.metadata },
      are: /Ready=False StubZonesPending/,
    },
    ...objectThere('broker', federationType, federation, {
      stubZones: [{ cluster: 'west', state: 'Pending', message: 'its Cluster names no resolver endpoint' }],
      conditions: [condition('Ready', 'False', 'StubZonesPending')],
    }),
  },
  {
    fault: 'the authority was killed',
    code: 'PTL0505',
    says: /authority on n1: it has not reported for/,
    doctorExit: 7,
    ...silentPart('authority'),
  },
  {
    fault: 'the authority of a federation is frozen',
    code: 'PTL0505',
    says: /Federation prod\/world: its authority has not reported for/,
    doctorExit: 7,
    conditions: {
      of: { at: 'broker', type: federationType, ref: federation.metadata },
      are: /Ready=Unknown AuthoritySilent/,
      note: 'written by the home of an embedded broker, or by a second authority; the column REPORTED shows how old the last report is',
    },
    ...watchedByHome(
      objectThere('broker', federationType, federation, {
        authority: { renewTime: '2026-01-01T00:00:01Z' },
        conditions: [condition('Ready', 'True', 'Ready')],
      }),
    ),
  },
  {
    fault: 'no authority for a federation',
    code: 'PTL0505',
    says: /no authority has written its status/,
    doctorExit: 7,
    ...objectThere('broker', federationType, federation),
  },
  {
    fault: 'the peering process has stopped',
    code: 'PTL0601',
    says: /peering on n1: it has not reported for/,
    doctorExit: 7,
    ...silentPart('peering'),
  },
  {
    fault: 'peers, and no peering process was ever started',
    code: 'PTL0601',
    says: /there are 1 Peers and no peering process reports/,
    doctorExit: 7,
    ...objectThere('home', peerType, peer('acme')),
  },
  {
    fault: 'a peer refuses us',
    code: 'PTL0602',
    says: /taking refused: wrong certificate/,
    doctorExit: 7,
    ...objectThere('home', peerType, peer('acme'), { consumer: { state: 'Refused', message: 'wrong certificate' } }),
  },
  {
    fault: 'a peer is away',
    code: 'PTL0603',
    says: /it is away \(connection refused\); its 3 services are withdrawn in 23h/,
    doctorExit: 7,
    ...objectThere('home', peerType, peer('acme'), {
      consumer: { state: 'Stale', message: 'connection refused', services: 3, awaySeconds: 100 },
    }),
  },
  {
    fault: 'a PeerExport selects nothing',
    code: 'PTL0604',
    says: /it selects no Service of its namespace/,
    doctorExit: 0,
    ...objectThere('home', peerExportType, {
      metadata: { name: 'all', namespace: 'shop' },
      spec: { services: ['nosuch'], peers: ['acme'] },
    }),
  },
  {
    fault: 'a PeerExport to an unknown peer',
    code: 'PTL0604',
    says: /there is no Peer nobody/,
    doctorExit: 0,
    ...objectThere('home', peerExportType, {
      metadata: { name: 'all', namespace: 'shop' },
      spec: { services: ['checkout'], peers: ['nobody'] },
    }),
  },
  {
    fault: 'the ingress of a peer is dead',
    code: 'PTL0605',
    says: /Peer portolan-system\/acme: IngressAway: its ingress does not answer/,
    doctorExit: 7,
    conditions: {
      of: { at: 'home', type: peerType, ref: peer('acme').metadata },
      are: /ServicesReachable=False IngressAway/,
    },
    ...objectThere('home', peerType, peer('acme'), {
      conditions: [condition('ServicesReachable', 'False', 'IngressAway', 'its ingress does not answer')],
    }),
  },
  {
    fault: 'our own ingress is dead',
    code: 'PTL0606',
    says: /Peer portolan-system\/acme: IngressAway: no Envoy of role ingress/,
    doctorExit: 7,
    conditions: {
      of: { at: 'home', type: peerType, ref: peer('acme').metadata },
      are: /IngressServed=False IngressAway/,
    },
    ...objectThere('home', peerType, peer('acme'), {
      conditions: [condition('IngressServed', 'False', 'IngressAway', 'no Envoy of role ingress has a configuration')],
    }),
  },
  {
    fault: 'an account of a part lacks a right',
    code: 'PTL0105',
    says: /dns on n1: its account may not watch services/,
    doctorExit: 7,
    make: async (scene) => {
      const lease = partLease(scene, 'dns', { ageMs: 0 });
      const annotations = { ...lease.metadata.annotations, 'portolan.dev/missing-rights': '["watch services"]' };
      await scene.desk.home.create(leaseType, { ...lease, metadata: { ...lease.metadata, annotations } });
    },
    mend: async ({ desk }) =>
      void (await desk.home.delete(leaseType, { namespace: systemNamespace, name: 'portolan-dns-n1' })),
  },
  {
    fault: 'the clock of a machine is off',
    code: 'PTL0701',
    says: /its clock is \d+s ahead/,
    doctorExit: 7,
    make: async ({ homes }) => {
      homes.clockOffMs = 60_000;
    },
    mend: async ({ homes }) => {
      homes.clockOffMs = 0;
    },
  },
  {
    fault: 'a certificate has expired',
    code: 'PTL0702',
    says: /it expired /,
    doctorExit: 7,
    ...tls(-10 * dayMs, -dayMs),
  },
  { fault: 'a certificate ends soon', code: 'PTL0703', says: /it ends /, doctorExit: 0, ...tls(-99 * dayMs, dayMs) },
  {
    fault: 'the certificate of a proxy ends soon',
    code: 'PTL0703',
    says: /certificate of proxy sidecar~west~web: it ends /,
    doctorExit: 0,
    make: async (scene) => {
      const nowMs = scene.desk.deps.world.clock.wallMs();
      const ending = [{ proxy: 'sidecar~west~web', startMs: nowMs - 99 * dayMs, endMs: nowMs + dayMs }];
      const lease = partLease(scene, 'xds', { ageMs: 1000 });
      const annotations = { ...lease.metadata.annotations, [endingAnnotation]: formatEnding(ending) };
      await scene.desk.home.create(leaseType, { ...lease, metadata: { ...lease.metadata, annotations } });
    },
    mend: silentPart('xds').mend,
  },
  {
    fault: 'a part runs another version',
    code: 'PTL0801',
    says: /it runs 0\.0\.1, this program is /,
    doctorExit: 0,
    make: async (scene) =>
      void (await scene.desk.home.create(leaseType, partLease(scene, 'agent', { ageMs: 1000, theirs: '0.0.1' }))),
    mend: silentPart('agent').mend,
  },
  {
    fault: 'connections from a node fail',
    code: 'PTL0901',
    says: /shop\/checkout from proxy on n1: 243\.0\.0\.1:80: 3 refused/,
    doctorExit: 7,
    statusExit: 0,
    statusSays: /not tried: connections from 1 proxy; portolan doctor tries some/,
    ...answeringPart('proxy', { problems: ['243.0.0.1:80: 3 refused'] }, { problems: [] }),
  },
  {
    fault: 'the xDS server is gone',
    code: 'PTL0902',
    says: /xds on n1: it has not reported for/,
    doctorExit: 7,
    ...silentPart('xds'),
  },
  {
    fault: 'an external service, and no Envoy has its configuration',
    code: 'PTL0904',
    says: /MeshExternalService portolan-system\/rates: NotProgrammed: no Envoy/,
    doctorExit: 0,
    conditions: {
      of: { at: 'home', type: meshExternalServiceType, ref: rates.metadata },
      are: /Ready=False NotProgrammed/,
    },
    ...objectThere('home', meshExternalServiceType, rates, {
      conditions: [condition('Accepted', 'True', 'Accepted'), condition('Ready', 'False', 'NotProgrammed', 'no Envoy')],
    }),
  },
];

function condition(type: string, status: string, reason: string, message = ''): object {
  return { type, status, reason, message, lastTransitionTime: '2026-01-01T00:00:00Z' };
}

function tls(fromMs: number, toMs: number): Pick<MadeFault, 'make' | 'mend'> {
  const metadata = { name: 'portolan-peering-tls', namespace: systemNamespace };
  return {
    make: async ({ desk }) => {
      const nowMs = desk.deps.world.clock.wallMs();
      const pem = certificate(nowMs + fromMs, nowMs + toMs);
      const data = { 'tls.crt': Buffer.from(pem).toString('base64') };
      await desk.home.create(secretType, { apiVersion: 'v1', kind: 'Secret', metadata, data } as AnyObject);
    },
    mend: async ({ desk }) => void (await desk.home.delete(secretType, metadata)),
  };
}

/** As an embedded broker does. */
function watchedByHome(making: Pick<MadeFault, 'make' | 'mend'>): Pick<MadeFault, 'make' | 'mend'> {
  const { make, mend } = thenWait(making, 15_000);
  return {
    make: async (scene) => {
      const { set } = scene;
      watchAllAuthorities({ client: set.broker.admin, world: set.simulation.world('home-broker'), log: silentLog });
      await make(scene);
    },
    mend,
  };
}
