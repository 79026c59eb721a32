// How one service is called: as a key here, as a record at the broker, and in the clusterset's DNS. Pure.

/** `<service>.<namespace>`: injective, because neither part can hold a dot. */
export function recordName(service: ServiceKey): string {
  return `${service.name}.${service.namespace}`;
}

export interface ServiceKey {
  readonly namespace: string;
  readonly name: string;
}

/** Undefined if the name is not that of a service's record. */
export function parseRecordName(record: string): ServiceKey | undefined {
  const parts = record.split('.');
  if (parts.length !== 2 || parts[0] === '' || parts[1] === '') return undefined;
  return { name: parts[0]!, namespace: parts[1]! };
}

/** `namespace/name`, by which queues and indexes know a service. */
export function formatServiceKey(service: ServiceKey): string {
  return `${service.namespace}/${service.name}`;
}

export function parseServiceKey(key: string): ServiceKey {
  const slash = key.indexOf('/');
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** RFC 1035 section 2.3.4, without the trailing dot. */
const dnsNameLengthMax = 253;

export interface HostnameRequest extends ServiceKey {
  readonly hostname: string;
  readonly cluster: string;
  readonly zone: string;
}

/** The name of one endpoint of a headless service. */
function endpointDnsName({ hostname, cluster, name, namespace, zone }: HostnameRequest): string {
  return `${hostname}.${cluster}.${name}.${namespace}.svc.${zone}`;
}

/** The hostnames whose clusterset name would be too long for DNS, so that they will have none. */
export function hostnamesTooLong(hostnames: Iterable<string>, request: Omit<HostnameRequest, 'hostname'>): string[] {
  return [...new Set(hostnames)].filter(
    (hostname) => endpointDnsName({ ...request, hostname }).length > dnsNameLengthMax,
  );
}
