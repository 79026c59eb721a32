// Turns the flags of `portolan up` into configuration, and names the flag that is wrong.

import type { Host } from '../../base/host.ts';
import { formatHostPort, type HostPort, parseHostPort } from '../../base/net/host-port.ts';
import { parseIp } from '../../base/net/ip.ts';
import type { JoinToken } from '../../clusterset/membership/join-token.ts';
import { checkedGateways, networkSpec } from '../clusterset/networks.ts';
import { usageError } from '../exit-codes.ts';
import { joinTokenIn, readToken } from '../given-token.ts';
import { nameserversOf } from './dns-server-flags.ts';
import { parseAdvertise, parseListen } from './options.ts';
import type { UpFlags, UpProxyMode } from './up.ts';

export interface UpConfig {
  readonly listen: HostPort;
  readonly advertise: HostPort | undefined;
  readonly token: JoinToken | undefined;
  readonly region: string;
  readonly zone: string;
  readonly dns: UpDns;
  readonly stub: UpStub | undefined;
  readonly proxy: UpProxyMode;
  readonly carriesServices: boolean;
  readonly peering: UpPeering | undefined;
  readonly network: string | undefined;
  /** Where other networks reach the gateway that runs here. */
  readonly gateway: HostPort | undefined;
}

export interface UpDns {
  readonly hosts: readonly string[];
  readonly port: number;
  readonly others: readonly HostPort[];
  /** The port was not given: a free one does as well. */
  readonly mayMove: boolean;
  readonly forward: readonly string[];
}

/** Where federations post their stub zones. */
export interface UpStub {
  readonly listen: HostPort;
  readonly advertise: HostPort;
}

interface UpPeering {
  readonly trustDomain: string;
  readonly listen: HostPort;
  readonly ingress: readonly HostPort[];
}

const loopback = '127.0.0.1';

export async function upConfig(host: Host, flags: UpFlags): Promise<UpConfig> {
  const listen = parseListen(flags.listen);
  const advertise = flags.advertise === undefined ? undefined : parseAdvertise(flags.advertise);
  if (flags.trustDomain === undefined && flags.ingress.length > 0)
    throw usageError('--ingress: needs --trust-domain, which starts peering');
  return {
    ...networkOf(flags),
    listen,
    advertise,
    token: flags.join === undefined ? undefined : joinTokenIn(await tokenIn(host, flags.join)),
    region: flags.region ?? '',
    zone: flags.zone ?? '',
    dns: { ...dnsOf(flags, advertise), forward: await nameserversOf(host, '--forward', flags.forward) },
    stub: stubOf(flags, advertise),
    proxy: flags.proxy,
    carriesServices: flags.services === true,
    peering:
      flags.trustDomain === undefined
        ? undefined
        : {
            trustDomain: flags.trustDomain,
            listen: parseListen(flags.peeringListen, '--peering-listen'),
            ingress: flags.ingress.map((text) => parseListen(text, '--ingress')),
          },
  };
}

/** As `portolan xds --gateway-port` has it. */
const gatewayPort = 15_443;

function networkOf(flags: UpFlags): Pick<UpConfig, 'network' | 'gateway'> {
  const { network } = networkSpec({ network: flags.network });
  if (flags.gateway === undefined) return { network, gateway: undefined };
  const gateway = parseHostPort(flags.gateway, gatewayPort);
  checkedGateways([gateway === undefined ? flags.gateway : formatHostPort(gateway.host, gateway.port)]);
  return { network, gateway };
}

/** A token begins with its version; everything else is the name of a file. */
async function tokenIn(host: Host, text: string): Promise<string> {
  const isToken = /^portolan\d+\./.test(text) || text === '-';
  return (await readToken(host, isToken ? { argument: text } : { file: text, flag: '--join' }))!;
}

function dnsOf({ dnsListen }: UpFlags, advertise: HostPort | undefined): Omit<UpDns, 'forward'> {
  if (dnsListen.length > 0) {
    const addresses = dnsListen.map((text) => parseListen(text, '--dns-listen'));
    const { port } = addresses[0]!;
    const hosts = addresses.filter((address) => address.port === port).map(({ host }) => host);
    return { hosts, port, others: addresses.filter((address) => address.port !== port), mayMove: false };
  }
  const own = advertise !== undefined && parseIp(advertise.host) !== undefined ? [advertise.host] : [];
  return { hosts: [...new Set([loopback, ...own])], port: 53, others: [], mayMove: true };
}

const stubPort = 8553;

function stubOf({ stubListen }: UpFlags, advertise: HostPort | undefined): UpStub | undefined {
  if (stubListen !== undefined) {
    const listen = parseListen(stubListen, '--stub-listen');
    return { listen, advertise: { host: advertise?.host ?? listen.host, port: listen.port } };
  }
  if (advertise === undefined || parseIp(advertise.host) === undefined) return undefined;
  const own = { host: advertise.host, port: stubPort };
  return { listen: own, advertise: own };
}
