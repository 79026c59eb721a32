// Inputs of those parts of `portolan up` that depend on the membership.

import type { Host } from '../../base/host.ts';
import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { UpProxyMode } from '../../cli/roles/up.ts';
import type { UpDns, UpStub } from '../../cli/roles/up-flags.ts';
import type { Client } from '../../kube/client/client.ts';

export interface MemberPartsOptions {
  readonly world: World;
  readonly log: Log;
  readonly host: Host;
  readonly home: Client;
  readonly directory: string;
  /** The id of a cluster that is in no clusterset. */
  readonly name: string;
  readonly region: string;
  readonly zone: string;
  readonly dns: UpDns;
  readonly stub: UpStub | undefined;
  readonly proxy: UpProxyMode;
  /** Cluster IPs of Services are routed on this machine too. */
  readonly carriesServices: boolean;
  /** Whether an Envoy runs beside it, which carries the connections to peers' services. */
  readonly hasEnvoy: boolean;
  /** One line of progress. */
  readonly say: (part: string, text: string) => void;
  /** A part could not be started again: the process ends. */
  readonly onFailed: (error: unknown) => void;
}
