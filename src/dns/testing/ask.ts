// For tests: a catalog from a few lines, a question from text, an answer as text. Questions and answers go through
// dns-packet, so that a second opinion reads every message we write.

import type { DecodedPacket, Answer as PacketAnswer, PacketOpt } from 'dns-packet';
import packet from 'dns-packet';
import { rcodeNames } from '../../base/dns/codes.ts';
import { type LogFields, silentLog } from '../../base/log.ts';
import type { Clock, Random, Timers, World } from '../../base/world.ts';
import { Catalog, type CatalogOptions } from '../../catalog/catalog.ts';
import type { NameTable } from '../../catalog/names/name-table.ts';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import type { Service } from '../../kube/objects/service.ts';
import type { ChainConfig } from '../chain/chain.ts';
import { DnsService } from '../chain/service.ts';
import { nobody, type StubZone } from '../config/config.ts';
import { Answer } from '../message/answer.ts';
import { messageOf } from '../message/handler.ts';
import { defaultSourceOption, type Transport } from '../message/wire.ts';
import { createCounters } from '../metrics/observe.ts';
import type { Exchange } from '../upstream/exchange.ts';

export const stillClock: Clock = { wallMs: () => 1_700_000_000_000, monotonicMs: () => 1000 };

export function makeCatalog(options: Partial<CatalogOptions> = {}): Catalog {
  return new Catalog({ clock: stillClock, cluster: { id: 'west' }, ...options });
}

interface EndpointSpec {
  readonly ip: string | string[];
  readonly hostname?: string;
  readonly ready?: boolean;
  readonly zone?: string;
}

export interface SliceSpec {
  readonly name?: string;
  /** Absent for a cluster's own slices. */
  readonly cluster?: string;
  readonly ports?: string[];
  readonly endpoints: (string | EndpointSpec)[];
}

/** `http:80/TCP`, `:80` for an unnamed one. */
function port(text: string): { name?: string; protocol: 'TCP' | 'UDP' | 'SCTP'; port: number } {
  const [, name, number, protocol] = /^([^:]*):(\d+)(?:\/(\w+))?$/.exec(text)!;
  return { ...(name ? { name } : {}), protocol: (protocol ?? 'TCP') as 'TCP', port: Number(number) };
}

export function makeSlice(key: string, spec: SliceSpec): EndpointSlice {
  const [namespace, service] = key.split('/') as [string, string];
  const endpoints = spec.endpoints.map((endpoint) => {
    const full = typeof endpoint === 'string' ? { ip: endpoint } : endpoint;
    return {
      addresses: [full.ip].flat(),
      ...(full.hostname ? { hostname: full.hostname } : {}),
      ...(full.zone ? { zone: full.zone } : {}),
      ...(full.ready === undefined ? {} : { conditions: { ready: full.ready } }),
    };
  });
  const labels: Record<string, string> = spec.cluster
    ? { 'multicluster.kubernetes.io/service-name': service, 'multicluster.kubernetes.io/source-cluster': spec.cluster }
    : { 'kubernetes.io/service-name': service };
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: spec.name ?? `${service}-${spec.cluster ?? 'own'}`, namespace, labels, resourceVersion: '7' },
    addressType: endpoints[0]?.addresses[0]?.includes(':') ? 'IPv6' : 'IPv4',
    ports: (spec.ports ?? []).map(port),
    endpoints,
  };
}

export interface ImportSpec {
  readonly type?: 'ClusterSetIP' | 'Headless';
  readonly ips?: string[];
  readonly ports?: string[];
  readonly trafficDistribution?: string;
  readonly slices?: SliceSpec[];
}

export function addImport(catalog: Catalog, key: string, spec: ImportSpec): void {
  const [namespace, name] = key.split('/') as [string, string];
  const { type = 'ClusterSetIP', ips = [], ports = [], trafficDistribution } = spec;
  catalog.facts.upsertServiceImport({
    metadata: { name, namespace, resourceVersion: '7' },
    spec: { type, ips, ports: ports.map(port), trafficDistribution },
  });
  for (const slice of spec.slices ?? []) catalog.facts.upsertEndpointSlice(makeSlice(key, slice));
}

export interface ServiceSpecText {
  readonly ips?: string[];
  readonly externalName?: string;
  readonly ports?: string[];
  readonly slices?: SliceSpec[];
}

export function addService(catalog: Catalog, key: string, spec: ServiceSpecText): void {
  const [namespace, name] = key.split('/') as [string, string];
  const ips = spec.ips ?? ['None'];
  const service: Service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace, resourceVersion: '7' },
    spec: {
      type: spec.externalName ? 'ExternalName' : 'ClusterIP',
      ...(spec.externalName ? { externalName: spec.externalName } : { clusterIP: ips[0], clusterIPs: ips }),
      ports: (spec.ports ?? []).map(port),
    },
  };
  catalog.facts.upsertService(service);
  for (const slice of spec.slices ?? []) catalog.facts.upsertEndpointSlice(makeSlice(key, slice));
}

export function syncAll(catalog: Catalog): void {
  catalog.setSynced('services');
  catalog.setSynced('imports');
}

export interface AskOptions {
  readonly transport?: Transport;
  readonly address?: string;
  readonly edns?: boolean | { readonly udpSize?: number; readonly version?: number; readonly options?: PacketOpt[] };
  readonly flags?: number;
}

export interface AskerOptions {
  readonly config?: Partial<ChainConfig>;
  readonly world?: Partial<Pick<World, 'clock' | 'timers' | 'random'>>;
  readonly exchange?: Exchange;
  readonly stubZones?: readonly StubZone[];
  /** Static records. */
  readonly records?: NameTable;
}

const noTimers: Timers = { after: () => ({ cancel: () => {} }) };
const noRandom: Random = { float: () => 0, bytes: (count) => new Uint8Array(count), uuid: () => '' };
const noExchange: Exchange = { ask: () => Promise.reject(new Error('there is no network here')), close: () => {} };

/** An error that would only be logged in production fails the test. */
export function throwFault(error: unknown): never {
  throw error;
}

/** Asks as a client on loopback would, without a socket. */
export class Asker {
  readonly service: DnsService;
  readonly counters = createCounters();
  readonly lines: LogFields[] = [];
  readonly #answer = new Answer();

  constructor(catalog: Catalog, options: AskerOptions = {}) {
    this.#answer.nsid = Buffer.from('test-server');
    this.#answer.keepaliveMs = 10_000;
    this.service = new DnsService({
      world: { clock: stillClock, timers: noTimers, random: noRandom, ...options.world },
      log: { ...silentLog, error: (text, fields) => throwFault(fields?.['error'] ?? new Error(text)) },
      counters: this.counters,
      writeLine: (fields) => this.lines.push(fields),
      memory: catalog.table.memory,
      records: options.records?.memory,
      stubZones: options.stubZones ?? [],
      exchange: options.exchange ?? noExchange,
      config: {
        serverId: 'test-server',
        clients: ['127.0.0.0/8'],
        cluster: catalog.cluster,
        clusterZone: catalog.clusterZone,
        clustersetZone: catalog.clustersetZone,
        localCluster: catalog.localCluster,
        sourceOption: defaultSourceOption,
        trusted: nobody,
        federationZones: [],
        ...options.config,
      },
    });
    catalog.table.onNews((news) => this.service.take(news));
    options.records?.onNews((news) => this.service.takeRecords(news));
  }

  /** The raw answer, or undefined for silence. */
  async send(bytes: Uint8Array, options: AskOptions = {}): Promise<Buffer | undefined> {
    const { transport = 'udp', address = '127.0.0.1' } = options;
    const result = this.service.responder.respond(bytes, transport, address, 5353, '', this.#answer, 0);
    if (typeof result !== 'number') {
      const message = await messageOf(result);
      return message && Buffer.from(message);
    }
    return result === 0 ? undefined : Buffer.from(this.#answer.bytes.subarray(0, result));
  }

  async askPacket(question: string, options: AskOptions = {}): Promise<DecodedPacket> {
    const reply = await this.send(encodeQuestion(question, options), options);
    if (!reply) throw new Error(`no answer to ${question}`);
    return packet.decode(reply);
  }

  /** `checkout.shop.svc.clusterset.local A` to `10.2.0.7, 10.3.0.4`, `NXDOMAIN`, `NODATA` and the like. */
  async ask(question: string, options: AskOptions = {}): Promise<string> {
    return describeAnswer(await this.askPacket(question, options));
  }
}

/** A question as in a table of tests: name, type, and perhaps ids of the rules that it proves. */
export function encodeQuestion(question: string, options: AskOptions = {}): Buffer {
  const [name, type, recordClass] = question.replace(/ \[[\d, -]+\]$/, '').split(' ') as [string, string, string?];
  const edns = options.edns === true ? {} : options.edns;
  const additionals = edns
    ? [
        {
          type: 'OPT' as const,
          name: '.' as const,
          udpPayloadSize: edns.udpSize ?? 1232,
          ednsVersion: edns.version ?? 0,
          extendedRcode: 0,
          flags: 0,
          flag_do: false,
          options: edns.options ?? [],
        },
      ]
    : [];
  return packet.encode({
    type: 'query',
    id: 4711,
    flags: options.flags ?? packet.RECURSION_DESIRED,
    questions: [{ name, type, class: recordClass ?? 'IN' }],
    additionals: additionals as never,
  });
}

export function describeAnswer(reply: DecodedPacket): string {
  const opt = reply.additionals?.find((record) => record.type === 'OPT') as { extendedRcode?: number } | undefined;
  const code = ((reply as unknown as { rcode: string }).rcode ?? 'NOERROR') as string;
  const extended = opt?.extendedRcode ? (rcodeNames[opt.extendedRcode << 4] ?? String(opt.extendedRcode)) : undefined;
  const answers = (reply.answers ?? []).map((record) => describeRecord(record));
  const status = extended ?? code;
  if (reply.flag_tc) return 'TRUNCATED';
  if (status !== 'NOERROR') return [status, ...answers].join(' ');
  if (answers.length === 0) return 'NODATA';
  return answers.join(', ');
}

function describeRecord(record: PacketAnswer): string {
  switch (record.type) {
    case 'SRV':
      return `${record.data.port} ${record.data.target}`;
    case 'TXT':
      return `"${[record.data].flat().map(String).join('" "')}"`;
    case 'SOA':
      return `SOA ${record.name}`;
    case 'HINFO':
      return `HINFO ${record.data.cpu}`;
    default:
      return String((record as { data: unknown }).data);
  }
}

/** The extended error of an answer: `14 cluster.local has not …`. */
export function extendedErrorOf(reply: DecodedPacket): string | undefined {
  const opt = reply.additionals?.find((record) => record.type === 'OPT') as
    | { options: { code: number; data: Buffer }[] }
    | undefined;
  const option = opt?.options.find(({ code }) => code === 15);
  return option && `${option.data.readUInt16BE(0)} ${option.data.subarray(2).toString()}`.trim();
}
