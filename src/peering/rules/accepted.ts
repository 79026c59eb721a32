// Which of a peer's services we want at all, by the tags and labels that its Peer names. Pure.

import type { PeerSpec } from '../kinds/peer.ts';
import type { SharedService } from '../kinds/shared-service.ts';

export function isAccepted({ acceptedTags = [], acceptedLabels = {} }: PeerSpec, service: SharedService): boolean {
  if (acceptedTags.length > 0 && !acceptedTags.some((tag) => service.tags.includes(tag))) return false;
  return Object.entries(acceptedLabels).every(([key, value]) => service.labels[key] === value);
}
