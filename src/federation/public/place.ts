// The place where public names are kept: a zone of a DNS server, what lies behind a webhook, or objects at the broker. Each has
// a key under which it is noted until nothing of ours is left there.

import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import type { InformerReader } from '../../kube/controller/informer.ts';
import { type Secret, secretType } from '../../kube/objects/secret.ts';
import type { Federation, FederationPublicDns } from '../kinds/federation.ts';
import { tsigKeyOf } from '../rules/tsig-secret.ts';
import { DnsEndpointProvider } from './dns-endpoint.ts';
import type { Provider } from './publisher.ts';
import { createRfc2136Provider, type DnsConnection } from './rfc2136.ts';
import { createWebhookProvider } from './webhook.ts';

export type PublishedPlace =
  | { readonly server: string; readonly tsigSecret: string }
  | { readonly webhook: string; readonly caBundle?: string }
  | { readonly dnsEndpoints: true };

/** A zone has one name, whatever the address of its server. No zone begins with an underscore. */
export function placeKeyOf({ domain, provider }: FederationPublicDns): string {
  if (provider.type === 'Webhook') return `${webhookPrefix}${domain}`;
  if (provider.type === 'DNSEndpoint') return `${dnsEndpointPrefix}${domain}`;
  return provider.rfc2136?.zone ?? domain;
}

const webhookPrefix = '_webhook.';
const dnsEndpointPrefix = '_dnsendpoint.';

export function placeOf({ provider: { type, rfc2136, webhook } }: FederationPublicDns): PublishedPlace {
  if (type === 'DNSEndpoint') return { dnsEndpoints: true };
  if (type === 'Webhook') {
    if (webhook === undefined) throw new Error('spec.public.provider: type Webhook needs webhook');
    const { url, caBundle } = webhook;
    return { webhook: url, ...(caBundle === undefined ? {} : { caBundle }) };
  }
  if (rfc2136 === undefined) throw new Error('spec.public.provider: type RFC2136 needs rfc2136');
  return { server: rfc2136.server, tsigSecret: rfc2136.tsigSecret.name };
}

export interface PlaceOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random' | 'network'>;
  readonly broker: Client;
  readonly clusterset: string;
  readonly federation: string;
  readonly federations: InformerReader<Federation>;
  readonly connect: (server: string) => DnsConnection;
  readonly owner: string;
  readonly ttlSeconds: number;
}

export interface OpenPlace {
  readonly provider: Provider;
  /** Another one when the credentials have changed. */
  readonly version: string;
  readonly close: () => void;
}

export async function openPlace(key: string, place: PublishedPlace, options: PlaceOptions): Promise<OpenPlace> {
  const { world, broker, clusterset: namespace, federation, owner, ttlSeconds } = options;
  const { clock, timers, random, network } = world;
  const isOpen = { version: '', close: () => {} };
  if ('dnsEndpoints' in place) {
    const present = () => options.federations.get(`${namespace}/${federation}`);
    const domain = key.slice(dnsEndpointPrefix.length);
    const shared = { broker, clock, namespace, domain, federation, present, owner, ttlSeconds };
    return { ...isOpen, provider: new DnsEndpointProvider(shared) };
  }
  if ('webhook' in place) {
    const { webhook: url, caBundle } = place;
    const certificateAuthority = caBundle === undefined ? undefined : Buffer.from(caBundle, 'base64').toString('utf8');
    const transport = network.http({
      server: new URL(url).origin,
      ...(certificateAuthority === undefined ? {} : { certificateAuthority }),
    });
    const domain = key.slice(webhookPrefix.length);
    const provider = createWebhookProvider({ url, domain, transport, timers, owner, ttlSeconds });
    return { ...isOpen, provider, close: () => transport.close() };
  }
  const { server, tsigSecret } = place;
  const secret = await broker.get<Secret>(secretType, { namespace, name: tsigSecret });
  const found = tsigKeyOf(secret);
  if ('problem' in found) throw new Error(found.problem);
  const connect = () => options.connect(server);
  const provider = createRfc2136Provider({ zone: key, key: found, connect, clock, random, owner, ttlSeconds });
  return { ...isOpen, provider, version: `${found.name} ${secret.metadata.resourceVersion ?? ''}` };
}
