// What a node proxy reports in its Lease about access: whether calls that no export allows are refused there. Pure.

export const accessAnnotation = 'portolan.dev/access';

/** Connections of one cluster to one port that were refused, or would be. */
export interface Refusal {
  readonly from: string;
  /** `namespace/name`, or an address that no Service has. */
  readonly service: string;
  /** Such as `8080/tcp`. */
  readonly port: string;
  readonly packets: number;
}

export interface AccessReport {
  readonly mode: string;
  readonly isEnforced: boolean;
  readonly reason: string;
  /** Empty if it is enforced. */
  readonly message: string;
  /** Ports of Pods with a node's own address that no export names, which stay open. */
  readonly uncovered?: number;
  /** The most frequent ones. */
  readonly refused: readonly Refusal[];
}
