// What each fault must make others tell, and which other lines it explains. Pure.

import { type ClusterId, clusterOf, clusters, type Fault, roleOf } from './faults.ts';

/** `status`, `doctor`, `conditions` and `dns` ask at one cluster or at the broker; the dashboard looks at all of them. */
export type Asker = 'dashboard' | `${'status' | 'doctor' | 'conditions' | 'dns'}@${ClusterId | 'broker'}`;

const places = [...clusters, 'broker'] as const;

export const askers: readonly Asker[] = [
  'dashboard',
  ...places.flatMap((place): Asker[] => [`status@${place}`, `doctor@${place}`, `conditions@${place}`]),
  ...clusters.map((id): Asker => `dns@${id}`),
];

const placeOf = (asker: Asker) => asker.split('@')[1];

/** The asker told the fault if one of its lines matches. */
export interface Expected {
  readonly by: RegExp;
  readonly line: RegExp;
}

const all = /^(status|doctor)@|^dashboard$/;
const at = (place: string) => new RegExp(`^(status|doctor)@${place}$|^dashboard$`);
const elsewhere = (cluster: string) => new RegExp(`^(status|doctor)@(?!${cluster}$)`);
const members = /^(status|doctor)@(?!broker)/;

export function expectedOf(fault: Fault): readonly Expected[] {
  const c = clusterOf(fault.part) ?? 'broker';
  const agent = new RegExp(`^PTL0202 agent (of cluster ${c}|on \\[${c}\\])`);
  const homeAway = new RegExp(`^PTL0207 home of cluster ${c} `);
  const role = roleOf(fault.part);
  const { kind } = fault;
  if (kind === 'clock jumped') return clockExpected(fault, c);
  if (kind === 'disk full')
    return role === 'broker'
      ? [
          { by: at('broker'), line: /^PTL0102 broker/ },
          { by: members, line: /^PTL0102 broker|^PTL020[12] / },
        ]
      : [{ by: at(c), line: new RegExp(`^PTL0102 home ${c} `) }];
  switch (role) {
    case 'home':
      return [
        { by: new RegExp(`^(status|doctor)@${c}$`), line: /^away|^PTL0101 / },
        { by: elsewhere(c), line: homeAway },
        { by: /^dashboard$/, line: new RegExp(`^PTL0101 home ${c} |^PTL0207 home of cluster ${c} `) },
      ];
    case 'broker':
      return [
        { by: /^(status|doctor)@broker$/, line: /^away|^PTL0101 / },
        { by: members, line: /^PTL0201 / },
        { by: /^dashboard$/, line: /^PTL0101 broker / },
        { by: /^conditions@(?!broker)/, line: /^ServiceExport \S+ Ready=Unknown/ },
      ];
    case 'agent':
      if (kind === 'cut off')
        return [
          { by: elsewhere(c), line: homeAway },
          { by: at(c), line: new RegExp(`${agent.source}|${homeAway.source}`) },
        ];
      return [{ by: all, line: agent }];
    case 'link':
      return [
        { by: new RegExp(`^(status|doctor)@${c}$`), line: /^PTL0201 / },
        { by: elsewhere(c), line: agent },
        { by: /^dashboard$/, line: agent },
        { by: new RegExp(`^conditions@${c}$`), line: /^ServiceExport \S+ Ready=Unknown/ },
      ];
    case 'dns':
      if (kind === 'cut off') return [{ by: at(c), line: new RegExp(`^PTL050[12] dns on \\[${c}\\]`) }];
      return [
        { by: at(c), line: new RegExp(`^PTL0501 dns on \\[${c}\\]`) },
        { by: new RegExp(`^dns@${c}$`), line: /^away/ },
      ];
    case 'proxy':
      return [
        { by: at(c), line: new RegExp(`^PTL0902 proxy on \\[${c}\\]`) },
        { by: new RegExp(`^conditions@${c}$`), line: /^ServiceImport \S+ Ready=False NotCarried/ },
      ];
    case 'authority':
      return [
        { by: all, line: /^PTL0505 / },
        { by: /^conditions@broker$/, line: /^Federation \S+ Ready=Unknown AuthoritySilent/ },
      ];
    case 'peering':
      return fault.part === 'peering west'
        ? [{ by: at('west'), line: /^PTL0601 peering on \[west\]/ }]
        : [{ by: at('west'), line: /^PTL0603 Peer \S+acme/ }];
    case 'backend':
      return [
        { by: at(c), line: new RegExp(`^PTL0305 Service shop/pay-${c} `) },
        { by: new RegExp(`^conditions@${c}$`), line: new RegExp(`^ServiceExport shop/pay-${c} Ready=False`) },
        { by: /^dns@/, line: new RegExp(`^no address: pay-${c}`) },
      ];
    default:
      return [{ by: /^dashboard$/, line: /^away/ }];
  }
}

/** A clock that is behind makes its owner silent for those who read its times, which is told as well. */
function clockExpected({ part }: Fault, c: string): readonly Expected[] {
  const role = roleOf(part);
  if (role === 'home') return [{ by: at(c), line: new RegExp(`^PTL0701 home ${c} `) }];
  if (role === 'agent') return [{ by: all, line: new RegExp(`^PTL0(701|202) agent (of cluster ${c}|on \\[${c}\\])`) }];
  return [{ by: at(c), line: new RegExp(`^PTL0(701|501) dns on \\[${c}\\]`) }];
}

/** Clusters that disagree about a service; without one of them nobody disagrees. */
const disagrees = (c: string) => (c === 'south' ? 'none' : 'PTL0302 ServiceExport shop/cart ');

/** Services that the cluster exports, alone or with others. */
const exported = (c: string) => `(pay-${c}|checkout|cart)`;

/**
 * Whether the line may be a consequence of the fault. Lines end with the places that see it, in brackets; lines of conditions
 * and DNS have the place of their asker.
 */
export function explains(fault: Fault, asker: Asker, line: string): boolean {
  const role = roleOf(fault.part);
  const c = clusterOf(fault.part);
  const place = placeOf(asker);
  const seenAt = /\[([^\]]*)\]$/.exec(line)?.[1]?.split(' ') ?? [place];
  const isAt = (where: string | undefined) => where !== undefined && seenAt.includes(where);
  const says = (pattern: string) => new RegExp(`^(?:${pattern})`).test(line);
  if (expectedOf(fault).some((one) => one.by.test(asker) && one.line.test(line))) return true;
  switch (role) {
    case 'broker':
      return says(
        'PTL02|PTL0101 broker|PTL0102 broker|PTL0304|PTL0504|PTL0505|PTL0507|stale |unread|incomplete|behind|home broker|cluster |service |Service(Ex|Im)port |Federation |no address: federated|away|PTL0603|PTL0302|PTL0903',
      );
    case 'link':
      return (
        says(
          `PTL020[1237] (broker|agent of cluster ${c}|agent on|cluster ${c}|home of cluster ${c})|PTL0504 .*cluster ${c} `,
        ) ||
        says(
          `${disagrees(c!)}|stale ${c}|cluster ${c} |(service|ServiceImport) shop/${exported(c!)} |no address: (pay-${c}|federated)`,
        ) ||
        (isAt(c) && says('PTL02|PTL030[24]|PTL050[457]|incomplete|stale|Service(Ex|Im)port |no address'))
      );
    case 'home':
      return (
        isAt(c) ||
        says(`PTL0(202|203|207) .*cluster ${c} |PTL0504 .*cluster ${c} |PTL010[12] home ${c} |home ${c} `) ||
        says(
          `${disagrees(c!)}|stale ${c}|cluster ${c} |(service|ServiceImport) shop/${exported(c!)} |no address: (pay-${c}|federated)`,
        ) ||
        (c === 'west' && says('PTL0603|PTL0602'))
      );
    case 'agent':
      return (
        says(`PTL020[237] .*cluster ${c} |PTL0504 .*cluster ${c} `) ||
        says(
          `${disagrees(c!)}|stale ${c}|cluster ${c} |(service|ServiceImport) shop/${exported(c!)} |no address: (pay-${c}|federated)`,
        ) ||
        (isAt(c) && says('PTL0202 agent on|PTL0304|PTL0507|Service(Ex|Im)port |PTL0701'))
      );
    case 'dns':
      return (
        says(`PTL0504 .*cluster ${c} |Federation |cluster ${c} `) ||
        (isAt(c) && says('PTL050[12356] |PTL0701|no address|away'))
      );
    case 'proxy':
      return says('service shop/c') || (isAt('west') && says('PTL090[123]|ServiceImport |PTL0507|cluster west '));
    case 'authority':
      return says('PTL050[45]|Federation |no address: federated|incomplete');
    case 'peering':
      return isAt('west') && says('PTL060[13] |PTL0602|cluster west |peer ');
    case 'backend':
      return (
        says(`service shop/pay-${c} |no address: pay-${c}`) ||
        (isAt(c) && says(`PTL0305 .*pay-${c}|ServiceExport shop/pay-${c} |cluster ${c} `)) ||
        says(`PTL090[13] .*pay-${c}`)
      );
    default:
      return asker === 'dashboard';
  }
}

/**
 * Whether another fault keeps this asker from knowing of the first, so that nothing is demanded of it: the asker's own home, its
 * way to the broker, or the part that would have reported.
 */
export function hides(other: Fault, fault: Fault, asker: Asker): boolean {
  const [place, c, o] = [placeOf(asker), clusterOf(fault.part), clusterOf(other.part)];
  const role = roleOf(other.part);
  if (role === 'backend') return false;
  if (other.part === 'dashboard') return asker === 'dashboard';
  if (role === 'broker') return true;
  if (o !== undefined && (o === c || o === place)) return true;
  // The dashboard reads all homes, and a peer is seen from west alone.
  return fault.part === 'peering acme' && o === 'west';
}
