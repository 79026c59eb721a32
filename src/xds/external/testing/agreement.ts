// Compares what the emitted listeners do, by the model of Envoy and the redirects of the kernel, with what the rules mean.

import { isInRange, parseIp } from '../../../base/net/ip.ts';
import type { MeshExternalService } from '../../../external/kinds/mesh-external-service.ts';
import { builtinPlugins } from '../../../external/plugins/builtin.ts';
import { type Connection, choose } from '../../../external/rules/choose.ts';
import { defaultOutboundPorts, type Redirect, redirectsOf } from '../../../external/rules/redirects.ts';
import { tablesOf } from '../../../external/rules/tables.ts';
import { externalResources, rulesInForce } from '../generate.ts';
import { EnvoyModel } from './envoy-model.ts';
import { type Random, type RandomConnection, randomConnection, randomServices } from './random-rules.ts';

export const testInput = {
  place: { clusterset: 'default', cluster: 'east' },
  plugins: builtinPlugins,
  secrets: () => undefined,
  address: '::',
  ports: defaultOutboundPorts,
};

/** The first disagreement in words; undefined if there is none. */
export function findDisagreement(random: Random, cases: number): string | undefined {
  const perSet = 40;
  for (let done = 0; done < cases; done += perSet) {
    // Some of them are not ready.
    const services = randomServices(random, { count: 1 + Math.floor(random() * 8), tls: 'caCert: { secret: gone }' });
    const wrong = compareSet(
      services,
      Array.from({ length: perSet }, () => randomConnection(random)),
    );
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function compareSet(services: readonly MeshExternalService[], asked: readonly RandomConnection[]): string | undefined {
  const input = { ...testInput, services };
  const rules = rulesInForce(input);
  const redirects = redirectsOf(tablesOf(rules), testInput.ports);
  const model = new EnvoyModel(externalResources(input));
  for (const one of asked) {
    const rule = choose(rules, connectionOf(one), requestOf(one));
    const wanted = rule?.target.destination.kind === 'closed' ? 'blackhole' : (rule?.target.name ?? 'passthrough');
    const got = arrive(model, redirects, one);
    const isSame = got.every((name) => name === wanted || name === `${wanted}_dns` || name === `${wanted}_static`);
    if (!isSame || got.length === 0)
      return `${JSON.stringify(one)}: the rules say ${wanted}, Envoy does ${got.join(', ') || 'close'}\n${JSON.stringify(
        services.map(({ metadata, spec }) => ({ metadata, spec })),
        undefined,
        1,
      )}`;
  }
  return undefined;
}

/** Clusters that a connection may end at; none if it is closed. */
function arrive(model: EnvoyModel, redirects: readonly Redirect[], one: RandomConnection): readonly string[] {
  const address = parseIp(one.address)!;
  const fitting = redirects.filter(({ port, range }) => port === one.port && isInRange(address, range));
  const [smallest] = fitting.sort((a, b) => (a.range.size < b.range.size ? -1 : 1));
  if (smallest === undefined) return ['passthrough'];
  const application = { http1: 'http/1.1', http2: 'h2c', tls: undefined, raw: undefined } as const;
  const outcome = model.connect(smallest.toPort, {
    address,
    port: one.port,
    transport: one.speech === 'tls' ? 'tls' : 'raw_buffer',
    ...(one.speech === 'tls' && one.name !== undefined ? { sni: one.name } : {}),
    ...(application[one.speech] === undefined ? {} : { application: application[one.speech] }),
    ...(one.speech !== 'tls' && one.name !== undefined ? { host: one.name } : {}),
  });
  return outcome.kind === 'closed' ? [] : outcome.names;
}

function connectionOf({ address, port, speech, name }: RandomConnection): Connection {
  const sni = speech === 'tls' && name !== undefined ? { sni: name } : {};
  const application = speech === 'http1' || speech === 'http2' ? { application: speech } : {};
  return {
    address: parseIp(address)!,
    port,
    transport: speech === 'tls' ? { kind: 'tls', ...sni } : { kind: 'plain', ...application },
  };
}

function requestOf({ speech, name }: RandomConnection): { host: string } | undefined {
  return (speech === 'http1' || speech === 'http2') && name !== undefined ? { host: name } : undefined;
}
