// The rules that a proxy of the other layout has for the same services: a chain for each service and for each endpoint, as
// kube-proxy's nftables mode lays them out. Written for comparison; nothing of it is used elsewhere.

import { backendsOf, ipOf, target } from './catalog.ts';

const table = 'ip other-layout';
const serviceChain = (service: number) => `service-s${service}-bench/tcp/http`;
const endpointChain = (service: number, address: string) =>
  `endpoint-s${service}-bench/tcp/http__${address}/${target.port}`;
const quoted = (name: string) => name.replaceAll('/', '_');

export function kubeSkeleton(): string {
  return `add table ${table}
add map ${table} service-ips { type ipv4_addr . inet_proto . inet_service : verdict; }
add map ${table} no-endpoint-services { type ipv4_addr . inet_proto . inet_service : verdict; }
add chain ${table} services
add chain ${table} mark-for-masquerade
add rule ${table} mark-for-masquerade meta mark set meta mark or 0x4000
add chain ${table} masquerading
add rule ${table} masquerading meta mark & 0x4000 == 0 return
add rule ${table} masquerading meta mark set meta mark xor 0x4000
add rule ${table} masquerading masquerade fully-random
add rule ${table} services ip daddr . meta l4proto . th dport vmap @service-ips
add chain ${table} nat-prerouting { type nat hook prerouting priority -100; }
add rule ${table} nat-prerouting jump services
add chain ${table} nat-output { type nat hook output priority -100; }
add rule ${table} nat-output jump services
add chain ${table} nat-postrouting { type nat hook postrouting priority 100; }
add rule ${table} nat-postrouting jump masquerading
`;
}

export function kubeService(service: number): string {
  const chain = quoted(serviceChain(service));
  const endpoints = backendsOf(service);
  return [
    `add chain ${table} ${chain}`,
    ...endpoints.flatMap((address) => endpointLines(service, address)),
    pickLine(service, endpoints),
    `add element ${table} service-ips { ${ipOf(service)} . tcp . 80 : goto ${chain} }`,
  ].join('\n');
}

/** One endpoint goes, or comes back. */
export function kubeChange(
  service: number,
  { gone, isBack }: { readonly gone: string; readonly isBack: boolean },
): string {
  const endpoints = isBack ? backendsOf(service) : backendsOf(service).filter((address) => address !== gone);
  const chain = quoted(endpointChain(service, gone));
  return [
    ...(isBack ? endpointLines(service, gone) : []),
    `flush chain ${table} ${quoted(serviceChain(service))}`,
    pickLine(service, endpoints),
    ...(isBack ? [] : [`flush chain ${table} ${chain}`, `delete chain ${table} ${chain}`]),
    '',
  ].join('\n');
}

function endpointLines(service: number, address: string): string[] {
  const chain = quoted(endpointChain(service, address));
  return [
    `add chain ${table} ${chain}`,
    `add rule ${table} ${chain} ip saddr ${address} jump mark-for-masquerade`,
    `add rule ${table} ${chain} meta l4proto tcp dnat to ${address}:${target.port}`,
  ];
}

function pickLine(service: number, endpoints: readonly string[]): string {
  const choices = endpoints.map((address, index) => `${index} : goto ${quoted(endpointChain(service, address))}`);
  return `add rule ${table} ${quoted(serviceChain(service))} numgen random mod ${endpoints.length} vmap { ${choices.join(', ')} }`;
}
