// What the verbs about clustersets take besides what every verb takes.

import type { CliDeps } from '../with-home.ts';

export interface ClusterSetDeps extends CliDeps {
  /** For pipelines: what the process ends with if nothing throws. */
  readonly setExitCode: (code: number) => void;
}

/** Names of the definitions in deploy/crds that a broker and a member's home serve. */
export const brokerDefinitions: readonly string[] = [
  'clustersets',
  'clusters',
  'serviceshards',
  'serviceimports',
  'federatedservices',
  'federations',
];

export const homeDefinitions: readonly string[] = [
  'clusterproperties',
  'serviceexports',
  'serviceimports',
  'serviceexportpolicies',
  'addressclaims',
];

export const defaultClusterSet = 'clusterset';
