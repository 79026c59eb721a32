// A proxy that refuses every resource the xDS server offers, so that the server writes conditions.

import { Client, credentials, type ServiceError } from '@grpc/grpc-js';
import protobuf from 'protobufjs';

const { root } = protobuf.parse(`syntax = "proto3";
  message Node { string id = 1; }
  message Status { int32 code = 1; string message = 2; }
  message Request { Node node = 2; repeated string names = 3; string type_url = 4; string nonce = 5; Status error = 6; }
  message Any { string type_url = 1; Named value = 2; }
  message Named { string name = 1; }
  message Response { string version = 1; repeated Any resources = 2; string type_url = 4; string nonce = 5; }`);
const requestType = root.lookupType('Request');
const responseType = root.lookupType('Response');

/** Output of `portolan xds bootstrap` for a proxy. */
export interface ProxyAccess {
  readonly target: string;
  readonly nodeId: string;
  /** Mutual TLS; without it in clear. */
  readonly tls?: { readonly authority: string; readonly certificate: string; readonly key: string };
  /** Names of secrets to ask for. */
  readonly names: readonly string[];
  /** Listeners by name, as clients without a proxy ask; all kinds without. */
  readonly listeners?: readonly string[];
}

/** Resolves with what ends it. */
export function refuseEverything({ target, nodeId, tls, names, listeners }: ProxyAccess): () => void {
  const pem = (text: string) => Buffer.from(text);
  const channel =
    tls === undefined
      ? credentials.createInsecure()
      : credentials.createSsl(pem(tls.authority), pem(tls.key), pem(tls.certificate));
  const client = new Client(target, channel, { 'grpc.ssl_target_name_override': 'portolan-xds' });
  const stream = client.makeBidiStreamRequest<object, Response>(
    '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
    (value) => Buffer.from(requestType.encode(requestType.fromObject(value)).finish()),
    (bytes) => responseType.toObject(responseType.decode(bytes)) as Response,
  );
  const node = { id: nodeId };
  const asked = new Map<string, readonly string[]>(
    listeners === undefined
      ? [...all.map((type): [string, string[]] => [url(type), []]), [url(secret), [...names]]]
      : [[url('listener.v3.Listener'), listeners]],
  );
  for (const [typeUrl, wanted] of asked) stream.write({ node, typeUrl, names: wanted });
  stream.on('data', ({ typeUrl, nonce, resources = [] }: Response) => {
    const error = { code: 3, message: 'refused by the test' };
    stream.write({ node, typeUrl, nonce, names: asked.get(typeUrl) ?? [], error });
    if (typeUrl !== url('cluster.v3.Cluster')) return;
    // As an Envoy does: the endpoints of the clusters that it was offered.
    const clusters = resources.map(({ value }) => value?.name ?? '');
    asked.set(url(endpoints), clusters);
    stream.write({ node, typeUrl: url(endpoints), names: clusters });
  });
  stream.on('error', (_error: ServiceError) => {});
  return () => {
    stream.cancel();
    client.close();
  };
}

interface Response {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly resources?: readonly { readonly value?: { readonly name?: string } }[];
}

const all = ['cluster.v3.Cluster', 'listener.v3.Listener'];
const endpoints = 'endpoint.v3.ClusterLoadAssignment';
const secret = 'transport_sockets.tls.v3.Secret';

function url(type: string): string {
  return `type.googleapis.com/envoy.${type === secret ? 'extensions' : 'config'}.${type}`;
}
