// What this mesh is to its peers: its trust domain, from the card that peering keeps, and the authority that issues its
// certificates, from a Secret.

import type { Credentials } from '../../base/x509/certificates.ts';
import { pairIn } from '../../kube/client/kept-authority.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import type { Secret } from '../../kube/objects/secret.ts';
import type { MeshDefaults } from '../../peering/kinds/peer-export.ts';
import { authoritySecret } from '../../peering/kinds/secrets.ts';
import { meshCardName, meshDefaultsIn } from '../../peering/rules/peer-introduction.ts';
import { type SourceOptions, sourceOf, type XdsSource } from './source.ts';

export interface MeshSourceOptions extends Omit<SourceOptions, 'views'> {
  readonly namespace: string;
  readonly secretsNamespace: string;
  readonly secrets: Informer<Secret>;
}

export interface MeshSource extends XdsSource {
  /** Undefined while peering has not run. */
  defaults(): MeshDefaults | undefined;
  /** Undefined if somebody else issues this mesh's certificates. */
  authority(): Credentials | undefined;
  onChange(listener: () => void): () => void;
}

export function startMeshSource(options: MeshSourceOptions): MeshSource {
  const { client, world, log, namespace, secretsNamespace, secrets } = options;
  const fieldSelector = `metadata.name=${meshCardName}`;
  const card = createInformer<ConfigMap>({ client, world, log, namespace, type: configMapType, fieldSelector });
  const source = sourceOf([card] as unknown as Informer<never>[], () => {});
  const secretKey = `${secretsNamespace}/${authoritySecret}`;
  return {
    ...source,
    defaults: () => meshDefaultsIn(card.get(`${namespace}/${meshCardName}`)?.data ?? {}),
    authority: () => pairIn(secrets.get(secretKey)),
    onChange: (listener) => {
      const offs = [
        card.on(() => listener()),
        secrets.on((key) => {
          if (key === secretKey) listener();
        }),
      ];
      return () => {
        for (const off of offs) off();
      };
    },
  };
}
