// The limits of one client, so that no client can harm others.

export interface EdgeLimits {
  readonly bodyBytesMax: number;
  /** Limit on the bodies of all requests being received or handled together. */
  readonly bodiesBytesMax: number;
  readonly headerBytesMax: number;
  /** Headers above this size count as heavy. */
  readonly heavyHeaderBytes: number;
  /** Bytes of heavy headers that one address may send at once, and in a second after that. */
  readonly heavyHeadersBurst: number;
  readonly heavyHeadersPerSecond: number;
  readonly connectionsMax: number;
  readonly streamsPerConnectionMax: number;
  /** From connecting to the first complete request header; the TLS handshake is part of it. */
  readonly headersMsMax: number;
  readonly bodyMsMax: number;
  /** From a complete request to the first byte of its answer. */
  readonly handleMsMax: number;
  /** How long a reader may take nothing of what waits for it. */
  readonly stallMsMax: number;
  /** How long a connection may stay open without a request on it. */
  readonly idleMsMax: number;
  /** How long requests in flight may go on after `close`. */
  readonly graceMsMax: number;
  /** Streams a client may reset at once, and per second after that, before its connection is ended. */
  readonly resetBurst: number;
  readonly resetsPerSecond: number;
}

export const defaultLimits: EdgeLimits = {
  bodyBytesMax: 3 * 1024 * 1024,
  bodiesBytesMax: 128 * 1024 * 1024,
  headerBytesMax: 64 * 1024,
  heavyHeaderBytes: 12 * 1024,
  heavyHeadersBurst: 2 * 1024 * 1024,
  heavyHeadersPerSecond: 512 * 1024,
  connectionsMax: 4096,
  streamsPerConnectionMax: 256,
  headersMsMax: 10_000,
  bodyMsMax: 30_000,
  handleMsMax: 60_000,
  stallMsMax: 20_000,
  idleMsMax: 180_000,
  graceMsMax: 10_000,
  resetBurst: 1000,
  resetsPerSecond: 100,
};
