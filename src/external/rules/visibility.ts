// In which clusters a resource counts: by where it was made and by the labels for clusterset and cluster. Pure.

import type { KubernetesObject } from '../../kube/objects/object.ts';
import { meshLabel, originOf, zoneLabel } from '../kinds/mesh-external-service.ts';

export interface Place {
  /** Name of the clusterset; `default` for a cluster that is in none. */
  readonly clusterset: string;
  /** Id of the cluster; empty if it has none yet. */
  readonly cluster: string;
}

/** As a label it means the clusterset that the cluster is in, whatever its name: there is one. */
export const defaultClusterset = 'default';

export type Visibility = { readonly isVisible: true } | { readonly isVisible: false; readonly reason: string };

export function visibilityIn(place: Place, object: KubernetesObject): Visibility {
  const { [meshLabel]: mesh, [zoneLabel]: zone } = object.metadata.labels ?? {};
  if (mesh !== undefined && mesh !== '' && mesh !== defaultClusterset && mesh !== place.clusterset)
    return hidden(`label ${meshLabel} names ${mesh}, this cluster is in ${place.clusterset}`);
  if (zone === undefined || zone === '' || zone === place.cluster) return { isVisible: true };
  if (originOf(object) === 'broker')
    return hidden(`label ${zoneLabel} names ${zone}, this cluster is ${place.cluster}`);
  const where = place.cluster === '' ? 'a cluster without an id' : `cluster ${place.cluster}`;
  return hidden(`label ${zoneLabel} names ${zone}, but the resource was made in ${where}: it is visible nowhere`);
}

function hidden(reason: string): Visibility {
  return { isVisible: false, reason };
}
