// Proxies for the benchmark of the discovery server, many in one process: each takes everything, acknowledges it at once
// and notes when what arrived. Told what to do by messages from its parent.

import http2 from 'node:http2';
import { FrameReader, frameOf } from '../src/base/grpc/frames.ts';
import { encodeMessage } from '../src/base/protobuf/encode.ts';
import { WireReader, wireTypes } from '../src/base/protobuf/wire-reader.ts';
import { envoySchema, typeUrlOf } from '../src/xds/envoy-schema.ts';
import { xdsServerName } from '../src/xds/identity/authority.ts';
import type { Variant } from '../src/xds/resource.ts';

export interface BenchIdentity {
  readonly id: string;
  readonly certificate: string;
  readonly key: string;
}

export type ProxyOrder =
  /** Answered with the time each of them had so many resources of a type. */
  | {
      readonly kind: 'connect';
      readonly proxies: readonly BenchIdentity[];
      readonly variant: Variant;
      readonly server: { readonly target: string; readonly authority: string };
      readonly type: 'endpoints' | 'listener' | 'cluster';
      readonly resources: number;
    }
  /** Answered with the times at which each proxy got its next responses of a type. */
  | { readonly kind: 'arrivals'; readonly type: 'endpoints' | 'listener' | 'cluster'; readonly count: number }
  | { readonly kind: 'leave' };

type ConnectOrder = Extract<ProxyOrder, { kind: 'connect' }>;

const service = 'envoy.service.discovery.v3';
const proxies: BenchProxy[] = [];
const nowMs = () => performance.timeOrigin + performance.now();

class BenchProxy {
  readonly #variant: Variant;
  readonly #session: http2.ClientHttp2Session;
  readonly #stream: http2.ClientHttp2Stream;
  readonly #counts = new Map<string, number>();
  readonly #waiting: {
    readonly url: string;
    readonly isDone: (count: number) => boolean;
    readonly resolve: (at: number) => void;
  }[] = [];

  constructor({ id, certificate, key }: BenchIdentity, { server, variant }: ConnectOrder) {
    this.#variant = variant;
    const ca = server.authority;
    this.#session = http2.connect(server.target, { ca, servername: xdsServerName, cert: certificate, key });
    this.#session.on('connect', () => this.#session.setLocalWindowSize(16 << 20));
    const method = variant === 'delta' ? 'DeltaAggregatedResources' : 'StreamAggregatedResources';
    const path = `/${service}.AggregatedDiscoveryService/${method}`;
    this.#stream = this.#session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const reader = new FrameReader({ messageBytesMax: 64 << 20 });
    this.#stream.on('data', (chunk: Buffer) => {
      for (const message of reader.read(chunk)) this.#take(message);
    });
    const node = { id, user_agent_name: 'envoy', metadata: { clusterset: 'proxied' } };
    this.#send({ node, type_url: typeUrlOf('cluster') });
    this.#send({ type_url: typeUrlOf('listener') });
  }

  /** Resolves with the time when so many resources of a type have arrived, counted from now or from the beginning. */
  until(url: string, count: number, isFromNow: boolean): Promise<number> {
    const goal = count + (isFromNow ? (this.#counts.get(url) ?? 0) : 0);
    return new Promise((resolve) => {
      const isDone = (have: number) => have >= goal;
      if (isDone(this.#counts.get(url) ?? 0)) resolve(nowMs());
      else this.#waiting.push({ url, isDone, resolve });
    });
  }

  leave(): void {
    this.#session.destroy();
  }

  #take(message: Buffer): void {
    const at = nowMs();
    const { url, nonce, version, resources } = headOf(message);
    this.#counts.set(url, (this.#counts.get(url) ?? 0) + resources);
    for (const [index, { url: wanted, isDone, resolve }] of [...this.#waiting.entries()].reverse()) {
      if (wanted !== url || !isDone(this.#counts.get(url)!)) continue;
      this.#waiting.splice(index, 1);
      resolve(at);
    }
    this.#send({ type_url: url, response_nonce: nonce, ...(this.#variant === 'sotw' && { version_info: version }) });
  }

  #send(fields: Record<string, unknown>): void {
    const name = this.#variant === 'delta' ? 'DeltaDiscoveryRequest' : 'DiscoveryRequest';
    this.#stream.write(frameOf(encodeMessage(envoySchema, `${service}.${name}`, fields)));
  }
}

/** The fields that an answer needs; resources are only counted. */
function headOf(message: Buffer): { url: string; nonce: string; version: string; resources: number } {
  const head = { url: '', nonce: '', version: '', resources: 0 };
  const reader = new WireReader(message);
  while (reader.hasMore()) {
    const { number, wireType } = reader.tag();
    if (number === 1) head.version = reader.string();
    else if (number === 4) head.url = reader.string();
    else if (number === 5) head.nonce = reader.string();
    else {
      if (number === 2 && wireType === wireTypes.bytes) head.resources += 1;
      reader.skip(wireType);
    }
  }
  return head;
}

async function follow(order: ProxyOrder): Promise<unknown> {
  if (order.kind === 'leave') {
    for (const proxy of proxies.splice(0)) proxy.leave();
    return 'left';
  }
  const url = typeUrlOf(order.type);
  if (order.kind === 'connect') {
    const added = order.proxies.map((proxy) => new BenchProxy(proxy, order));
    proxies.push(...added);
    return Promise.all(added.map((proxy) => proxy.until(url, order.resources, false)));
  }
  const times = Promise.all(proxies.map((proxy) => proxy.until(url, order.count, true)));
  process.send!({ kind: 'waiting' });
  return times;
}

process.on('message', (order: ProxyOrder) => {
  void follow(order).then((result) => process.send!({ kind: 'result', result }));
});
