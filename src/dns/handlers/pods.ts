// Names of Pods by their address, without a look at Pods: `10-244-0-7.shop.pod.cluster.local` is 10.244.0.7, whether
// a Pod has it or not. For clusters that had it so before; verified names lie in the catalog (pod-names.ts).

import { classIn, rcode, recordType } from '../../base/dns/codes.ts';
import { encodeName, isWithin } from '../../base/dns/name.ts';
import { parseAddress } from '../../base/net/ip.ts';
import { addressOfPodLabel } from '../../catalog/names/pod-names.ts';
import type { Zone } from '../../catalog/names/zones.ts';
import type { Answer } from '../message/answer.ts';
import type { Handler, Step } from '../message/handler.ts';
import { SoaTemplate } from '../message/soa.ts';
import { headerBytes, type Query } from '../message/wire.ts';

const serial = 1;

export function podHandler({ zone }: { readonly zone: Zone }): Handler {
  const pods = encodeName(`pod.${zone.name}`);
  const soa = new SoaTemplate(zone);

  function handle(query: Query, answer: Answer): Step {
    if (!isWithin(query.name, query.nameLength, pods) || query.class !== classIn) return 'next';
    answer.zone = zone.id;
    answer.isAuthoritative = true;
    const labels = labelsBefore(query, query.nameLength - pods.length);
    const address = labels.length === 2 ? parseAddress(addressOfPodLabel(labels[0]!) ?? '') : undefined;
    // A namespace has names below it, and is therefore there (RFC 8020).
    if (!address && labels.length > 1) answer.rcode = rcode.NXDOMAIN;
    const isAsked = query.type === (address?.length === 4 ? recordType.A : recordType.AAAA);
    if (address && isAsked)
      answer.recordAt('answer', query.type, zone.ttlSeconds, address, 0, address.length, 0xc000 | headerBytes);
    else soa.write(answer, 'authority', query, serial, zone.bytes.length);
    return 'done';
  }

  return { name: 'pods', handle };
}

function labelsBefore({ name }: Query, end: number): string[] {
  const labels: string[] = [];
  for (let at = 0; at < end; at += name[at]! + 1)
    labels.push(Buffer.from(name.subarray(at + 1, at + 1 + name[at]!)).toString('latin1'));
  return labels;
}
