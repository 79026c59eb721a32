// Calls to one etcd through any of its endpoints: the one that answered last is asked first, another after a failure. A
// call that only reads is repeated elsewhere; one that writes is not, for its outcome may be unknown.

import { type Code, codes } from '../../../base/grpc/status.ts';
import {
  decodeLease,
  decodeRange,
  decodeToken,
  decodeTxn,
  encodeAuthenticate,
  encodeCompaction,
  encodeLeaseGrant,
  encodeLeaseId,
  encodeRange,
  encodeTxn,
  type Lease,
  type RangeAnswer,
  type TxnAnswer,
  type TxnRequest,
} from './messages.ts';

export interface EtcdCall {
  readonly path: string;
  readonly message: Uint8Array;
  readonly withinMs: number;
  readonly token: string | undefined;
}

export interface EtcdEndpoint {
  readonly url: string;
  /** Rejects with EtcdError. */
  call(call: EtcdCall): Promise<Buffer>;
  close(): void;
}

export class EtcdError extends Error {
  readonly code: Code;
  constructor(code: Code, message: string) {
    super(message);
    this.code = code;
  }

  /** etcd has answered that it did nothing. Of any other failure nobody knows yet. */
  get isRefusal(): boolean {
    return this.code === codes.invalidArgument || this.code === codes.resourceExhausted || this.isAboutRights;
  }

  get isAboutRights(): boolean {
    return this.code === codes.permissionDenied || this.code === codes.unauthenticated;
  }

  /** There is no room: nothing can be put until its owner has made some and taken back the alarm. */
  get isAboutSpace(): boolean {
    return this.code === codes.resourceExhausted;
  }
}

/** Another etcd answers than the one before: nothing read from it or written to it would mean anything. */
export class OtherClusterError extends Error {}

export interface EtcdClientOptions {
  /** All of one etcd; at least one. */
  readonly endpoints: readonly EtcdEndpoint[];
  readonly credentials?: { readonly name: string; readonly password: string } | undefined;
  /** Time for one call at one endpoint. */
  readonly callMs?: number;
}

const defaultCallMs = 2_500;

export class EtcdClient {
  readonly #options: EtcdClientOptions;
  #current = 0;
  #token: string | undefined;
  #clusterId: string | undefined;

  constructor(options: EtcdClientOptions) {
    this.#options = options;
  }

  /** Linearizable. */
  async range(request: Parameters<typeof encodeRange>[0]): Promise<RangeAnswer> {
    return this.#known(decodeRange(await this.#anywhere('/etcdserverpb.KV/Range', encodeRange(request))));
  }

  async txn(request: TxnRequest): Promise<TxnAnswer> {
    return this.#known(decodeTxn(await this.#once('/etcdserverpb.KV/Txn', encodeTxn(request))));
  }

  async compact(revision: number): Promise<void> {
    await this.#once('/etcdserverpb.KV/Compact', encodeCompaction(revision));
  }

  /** A grant that was lost on the way ends by itself. */
  async grantLease(seconds: number): Promise<Lease> {
    return decodeLease(await this.#anywhere('/etcdserverpb.Lease/LeaseGrant', encodeLeaseGrant(seconds)));
  }

  async keepAlive(leaseId: bigint): Promise<Lease> {
    return decodeLease(await this.#anywhere('/etcdserverpb.Lease/LeaseKeepAlive', encodeLeaseId(leaseId)));
  }

  async revokeLease(leaseId: bigint): Promise<void> {
    await this.#once('/etcdserverpb.Lease/LeaseRevoke', encodeLeaseId(leaseId));
  }

  close(): void {
    for (const endpoint of this.#options.endpoints) endpoint.close();
  }

  async #anywhere(path: string, message: Uint8Array): Promise<Buffer> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#once(path, message);
      } catch (error) {
        if (tries >= this.#options.endpoints.length || (error instanceof EtcdError && error.isRefusal)) throw error;
      }
    }
  }

  /** A token may have run out: etcd has then done nothing, and it is sent once more with a new one. */
  async #once(path: string, message: Uint8Array): Promise<Buffer> {
    const index = this.#current;
    const endpoint = this.#options.endpoints[index]!;
    const withinMs = this.#options.callMs ?? defaultCallMs;
    const send = async () => endpoint.call({ path, message, withinMs, token: await this.#tokenFrom(endpoint) });
    try {
      return await send();
    } catch (error) {
      const isStaleToken = error instanceof EtcdError && error.code === codes.unauthenticated && this.#token;
      if (isStaleToken) {
        this.#token = undefined;
        return await send();
      }
      if (this.#current === index) this.#current = (index + 1) % this.#options.endpoints.length;
      throw error;
    }
  }

  async #tokenFrom(endpoint: EtcdEndpoint): Promise<string | undefined> {
    const { credentials, callMs = defaultCallMs } = this.#options;
    if (credentials === undefined || this.#token !== undefined) return this.#token;
    const answer = await endpoint.call({
      path: '/etcdserverpb.Auth/Authenticate',
      message: encodeAuthenticate(credentials.name, credentials.password),
      withinMs: callMs,
      token: undefined,
    });
    this.#token = decodeToken(answer);
    return this.#token;
  }

  #known<Answer extends { readonly clusterId: string }>(answer: Answer): Answer {
    this.#clusterId ??= answer.clusterId;
    if (answer.clusterId === this.#clusterId) return answer;
    throw new OtherClusterError(
      `etcd has become another cluster (${answer.clusterId}, before ${this.#clusterId}): it was replaced or restored; restart the home when that is what you want`,
    );
  }
}
