// The manifests of deploy/manifests, from the same objects that `broker init`, `broker token` and `join` write, so that a
// broker laid out with kubectl is the one that the commands lay out. Pure.

import type { Manifest } from '../../kube/objects/manifest.ts';
import { brokerObjects, memberNamespaceObject, memberObjects } from './broker-objects.ts';
import { homeObjects, serviceWriterObjects } from './home-objects.ts';
import { proxyObjects, proxyServicesObjects } from './proxy-objects.ts';

export interface ManifestFile {
  readonly name: string;
  /** Lines for the top of the file. */
  readonly says: readonly string[];
  readonly manifests: readonly Manifest[];
}

const clusterset = 'clusterset';
const example = { clusterset, id: 'east', spec: {} };

export function deployManifests(): ManifestFile[] {
  return [
    {
      name: 'broker.yaml',
      says: [
        'A clusterset at its broker, as portolan broker init lays it out; portolan broker init --print says it for another',
        'name or other policies. Needs the definitions of ../crds first. A broker serves one clusterset.',
      ],
      manifests: brokerObjects({ clusterset, spec: {} }),
    },
    {
      name: 'member.yaml',
      says: [
        'What portolan broker token makes at the broker for a cluster named east, ready to be applied. It can name no owner,',
        'because the uid of the namespace is not known yet: when the cluster leaves, delete these objects too.',
      ],
      manifests: [memberNamespaceObject(example), ...memberObjects(example)],
    },
    {
      name: 'agent.yaml',
      says: ["An agent's account in its own cluster, with the rights that its controllers use and no more."],
      manifests: homeObjects(),
    },
    {
      name: 'services.yaml',
      says: [
        'The right of an agent to write Services, given by choice: for FederatedServices that name this cluster, and for the',
        'Service of each import in clustersets that say clusterSetIP: derived.',
      ],
      manifests: serviceWriterObjects(),
    },
    {
      name: 'proxy.yaml',
      says: ['The account of node proxies in their own cluster. A proxy also needs root on its node, and its network.'],
      manifests: proxyObjects(),
    },
    {
      name: 'proxy-services.yaml',
      says: ['The right of node proxies to read Services, given by choice: for portolan proxy --services.'],
      manifests: proxyServicesObjects(),
    },
  ];
}
