// Services for the tests of peering, and a view of them that an owner's session can read.

import type { SharedService } from '../kinds/shared-service.ts';
import type { Offer } from '../session/messages.ts';
import type { OwnerView } from '../session/owner-session.ts';
import { v1alpha1 } from '../transport/wire.ts';

export function serviceOf(id: string, changes: Partial<SharedService> = {}): SharedService {
  return {
    name: id,
    description: '',
    tags: [],
    labels: {},
    fqdn: `${id}.example.com`,
    id,
    san: `spiffe://example.com/${id}`,
    protocols: ['http'],
    endpoints: [{ address: '192.0.2.1', port: 443 }],
    ...changes,
  };
}

export class TestView implements OwnerView {
  hasSynced = true;
  epoch = 'epoch-1';
  revision = 1;
  readonly offers = new Map<string, Offer>();

  get ids(): Iterable<string> {
    return this.offers.keys();
  }

  offer(id: string): Offer | undefined {
    return this.offers.get(id);
  }

  put(service: SharedService): string {
    this.offers.set(service.id, v1alpha1.encodeOffer(service));
    this.revision += 1;
    return service.id;
  }

  remove(id: string): string {
    this.offers.delete(id);
    this.revision += 1;
    return id;
  }
}
