// Whom this server believes, and may stop believing while it runs: addresses and certificates of peers, and the keys they
// sign with. Plain data, so that a worker thread can be told.

import type { TsigKey } from '../../base/dns/tsig.ts';
import type { TrustConfig } from '../config/config.ts';
import { Peers } from './peers.ts';

export class Trust {
  readonly peers: Peers;
  #keys: readonly TsigKey[];

  constructor(config: TrustConfig) {
    this.peers = new Peers(config.peers);
    this.#keys = config.keys;
  }

  get keys(): readonly TsigKey[] {
    return this.#keys;
  }

  replace(config: TrustConfig): void {
    this.peers.replace(config.peers);
    this.#keys = config.keys;
  }
}
