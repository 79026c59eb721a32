// The containers of an Envoy: one of ours gets its first certificate for the token of the Pod, writes its configuration and
// ends; Envoy runs; one of ours renews the certificate. Only the first sees the token, which is good at xds alone. The Envoy
// of a gateway is a sidecar, which Kubernetes ends after the others: ours drains it before. Pure.

import { proxyTokenAudience, xdsRootsName } from '../kube/objects/ours.ts';
import { given, itemsOf } from './marks.ts';
import type { EnvoyRole, Part } from './parts.ts';
import { containerSecurity, fieldVariable, heapVariable, imageFields, readinessTimes, resourcesOf } from './pod.ts';
import { drainSecondsMax, type Values } from './values.ts';

const directory = '/var/lib/portolan/proxy';
const server = 'portolan-xds.portolan-system.svc:15010';
/**
 * For the Envoy of an ingress: how long connections of a caller or a service live that was taken away. Envoy takes it
 * from its command line alone; its default is ten minutes.
 */
export const ingressArgs: readonly string[] = ['--drain-time-s', '2'];
/** For the Envoy of a gateway: a member or a service that was taken away loses its connections after this time. */
export const gatewayArgs: readonly string[] = ['--drain-time-s', '4'];
export const gatewayDrainSeconds: number = Number(gatewayArgs[1]);
/** Flags of Envoy beside its configuration. */
export const argsOfRole: Readonly<Record<EnvoyRole, readonly string[]>> = {
  ingress: ingressArgs,
  gateway: gatewayArgs,
  sidecar: [],
};
const state = { name: 'state', mountPath: '/var/lib/portolan' };
const tmp = { name: 'tmp', mountPath: '/tmp' };
const proof = [
  { name: 'xds-token', mountPath: '/var/run/secrets/portolan-xds', readOnly: true },
  { name: 'xds-roots', mountPath: '/etc/portolan-xds', readOnly: true },
];
const tokenFile = `${proof[0]!.mountPath}/token`;
const authorityFile = `${proof[1]!.mountPath}/ca.crt`;
/** The shortest that API servers grant. */
const tokenSeconds = 600;

/** For its processes to end, after the longest drain. */
const endSeconds = 30;

/** Volumes of its Pod, which has no other token. */
export const envoyVolumes: readonly object[] = [
  {
    name: 'xds-token',
    projected: {
      sources: [
        { serviceAccountToken: { path: 'token', audience: proxyTokenAudience, expirationSeconds: tokenSeconds } },
      ],
    },
  },
  // Written by xds when it starts; the Pod waits for it.
  { name: 'xds-roots', configMap: { name: xdsRootsName } },
];

export function envoyContainers(part: Part, role: EnvoyRole, values: Values): object {
  const { extraArgs, extraEnv } = values[part.name];
  const ours = (name: string, args: readonly string[], more: readonly object[] = []) => ({
    name,
    ...imageFields(values),
    args: ['xds', ...args, '--directory', directory],
    env: [fieldVariable('POD_NAME', 'metadata.name'), heapVariable],
    resources: { requests: { cpu: '10m', memory: '96Mi' }, limits: { memory: '96Mi' } },
    securityContext: containerSecurity(),
    volumeMounts: [state, tmp, ...more],
  });
  // Open as soon as the discovery server has sent its listeners. No liveness probe: an Envoy goes on without that server.
  const readinessProbe = { tcpSocket: { port: part.ports[0]?.name }, ...readinessTimes };
  const ownArgs = argsOfRole[role];
  const envoy = {
    name: 'envoy',
    image: values.envoyImage,
    ...given('imagePullPolicy', values.imagePullPolicy),
    args: ['-c', `${directory}/envoy.json`, '--log-level', values.logLevel, ...ownArgs, ...itemsOf(extraArgs)],
    ...given('env', extraEnv),
    ports: part.ports.map(({ name, port, protocol }) => ({ name, containerPort: port, protocol })),
    readinessProbe,
    resources: resourcesOf(values[part.name]),
    securityContext: containerSecurity(),
    volumeMounts: [{ ...state, readOnly: true }, tmp],
  };
  const first = (args: readonly string[]) =>
    ours('bootstrap', [...args, '--token-file', tokenFile, '--authority-file', authorityFile], proof);
  const bootstrap = ['bootstrap', '--role', role, '--name', '$(POD_NAME)', '--server', server];
  if (role !== 'gateway') return { initContainers: [first(bootstrap)], containers: [envoy, ours('renew', ['renew'])] };
  return {
    terminationGracePeriodSeconds: drainSecondsMax + endSeconds,
    initContainers: [first(bootstrap), { ...envoy, restartPolicy: 'Always' }],
    containers: [ours('renew', ['renew', '--drain', String(values.gateway.drainSeconds)])],
  };
}
