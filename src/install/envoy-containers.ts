// The containers of an Envoy: one of ours writes its first configuration and ends, Envoy runs, and one of ours renews its
// certificate. Pure.

import { given, itemsOf } from './marks.ts';
import type { Part } from './parts.ts';
import { containerSecurity, fieldVariable, heapVariable, imageFields, readinessTimes, resourcesOf } from './pod.ts';
import type { Values } from './values.ts';

const directory = '/var/lib/portolan/proxy';
const server = 'portolan-xds.portolan-system.svc:15010';
/**
 * For the Envoy of an ingress: how long connections of a caller or a service live that was taken away. Envoy takes it
 * from its command line alone; its default is ten minutes.
 */
export const ingressArgs: readonly string[] = ['--drain-time-s', '2'];
const mounts = [
  { name: 'state', mountPath: '/var/lib/portolan' },
  { name: 'tmp', mountPath: '/tmp' },
];

export function envoyContainers(part: Part, role: 'ingress' | 'sidecar', values: Values): object {
  const { extraArgs, extraEnv } = values[part.name];
  const ours = (name: string, args: readonly string[]) => ({
    name,
    ...imageFields(values),
    args: ['xds', ...args, '--directory', directory],
    env: [fieldVariable('POD_NAME', 'metadata.name'), heapVariable],
    resources: { requests: { cpu: '10m', memory: '96Mi' }, limits: { memory: '96Mi' } },
    securityContext: containerSecurity(),
    volumeMounts: mounts,
  });
  // Open as soon as the discovery server has sent its listeners. No liveness probe: an Envoy goes on without that server.
  const readinessProbe = { tcpSocket: { port: part.ports[0]?.name }, ...readinessTimes };
  const ownArgs = role === 'ingress' ? ingressArgs : [];
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
    volumeMounts: mounts,
  };
  return {
    initContainers: [ours('bootstrap', ['bootstrap', '--role', role, '--name', '$(POD_NAME)', '--server', server])],
    containers: [envoy, ours('renew', ['renew'])],
  };
}
