// The acts of the check of gateways that replace the roots of members. A rotation takes months by the clock: what is kept of it is
// certificates, so that a root with an earlier beginning is a root whose time has come.

import { fileURLToPath } from 'node:url';
import { createRealWorld } from '../../src/base/real/world.ts';
import { type Credentials, issueCertificate } from '../../src/base/x509/certificates.ts';
import { clusterSetDnsName } from '../../src/clusterset/rules/clusterset-dns.ts';
import { readNetworks } from '../../src/clusterset/rules/networks/networks.ts';
import { pairIn, textIn } from '../../src/kube/client/kept-authority.ts';
import type { ConfigMap } from '../../src/kube/objects/config-map.ts';
import { gatewayAuthoritySecret, systemNamespace, xdsNamespace } from '../../src/kube/objects/ours.ts';
import type { Secret } from '../../src/kube/objects/secret.ts';
import { gatewayPort } from '../../src/xds/gateways/names.ts';
import { rootTimes } from '../../src/xds/identity/gateway-roots.ts';
import { MeshCertificates } from '../../src/xds/sources/mesh-certificates.ts';
import { until } from '../support/dns-process.ts';
import { LineProcess } from '../support/proxy-processes.ts';
import { type Id, ids, pause, type Stage } from './stage.ts';
import { type Act, none, onlyWithin, underLoad } from './under-load.ts';

const dayMs = 24 * 3_600_000;
const world = createRealWorld();
const metadata = { name: gatewayAuthoritySecret, namespace: xdsNamespace };

const kept = (stage: Stage, id: Id): Promise<Secret> =>
  stage.members[id].home.order<Secret>({ get: { apiVersion: 'v1', kind: 'Secret', metadata } });

/** The same key and name, in a certificate that began so long ago. */
function aged(id: Id, key: string, ageMs: number): string {
  const notBeforeMs = world.clock.wallMs() - ageMs;
  const notAfterMs = notBeforeMs + rootTimes.lifeMs;
  const subject = { commonName: `Portolan gateways ${id}` };
  return issueCertificate({
    ...{ subject, key, use: { kind: 'authority' }, serial: world.random.bytes(16), notBeforeMs, notAfterMs },
  });
}

/** Lets time pass for one root of a member, and starts its xds, which then takes the next step. */
async function age(stage: Stage, id: Id, which: 'tls' | 'next', ageMs: number): Promise<void> {
  const secret = await kept(stage, id);
  const certificate = aged(id, textIn(secret, `${which}.key`), ageMs);
  const data = { [`${which}.crt`]: Buffer.from(certificate).toString('base64') };
  await stage.members[id].home.order({ patch: { apiVersion: 'v1', kind: 'Secret', metadata, data } });
  await stage.members[id].roles.xds.again();
}

/** What the other members trust of this one is what it keeps. */
function untilTrusted(stage: Stage, id: Id): Promise<void> {
  return until(`the roots of ${id} are known to the others`, async () => {
    const secret = await kept(stage, id);
    const own = ['tls.crt', 'next.crt', 'former.crt'].map((name) => textIn(secret, name).trim()).filter(Boolean);
    const known = await Promise.all(ids.filter((other) => other !== id).map((other) => trustedBy(stage, other, id)));
    return known.every((roots) => roots.toSorted().join() === own.toSorted().join());
  });
}

async function trustedBy(stage: Stage, at: Id, id: Id): Promise<readonly string[]> {
  const found = await stage.members[at].home.order<ConfigMap>({
    get: {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: systemNamespace, name: clusterSetDnsName } },
    },
  });
  return (readNetworks(found).clusters.get(id)?.trustRoots ?? []).map((root) => root.trim());
}

/** A new handshake at a gateway of east, with a certificate that this root of west signs. */
async function askEast(stage: Stage, root: Credentials): Promise<string> {
  const options = { only: 'client', commonName: 'test', lifetimeMs: 3_600_000, keptMax: 1 } as const;
  const { certificate, key } = new MeshCertificates(world, options).of('spiffe://west.prod/node/test', root);
  const address = stage.members.east.gateways[0]!.place.address;
  const authority = `${await stage.addressIn('east', 'cart')}:80`;
  const to = { address, port: gatewayPort, sni: 'west.prod', authority };
  const order = { do: 'connect', ...to, certificate, key };
  // From the node, as its Envoy does: the gateways have no way back to Pods of west.
  const script = fileURLToPath(new URL('../support/xds-inside.ts', import.meta.url));
  const lines = new LineProcess(stage.net.start(stage.members.west.node, process.execPath, [script]));
  try {
    return (await lines.ask<{ answer: string }>({ id: 1, order })).answer;
  } finally {
    await lines.stop();
  }
}

/** A node that has no connections yet reaches the gateways of east. */
async function newNodeConnects(stage: Stage): Promise<void> {
  await stage.members.south.roles.envoy.again();
  await stage.answered('south', 'cart', ['east']);
}

async function rotate(stage: Stage, id: Id): Promise<void> {
  const before = textIn(await kept(stage, id), 'tls.key');
  await age(stage, id, 'tls', 300 * dayMs);
  await until(`${id} has a next root`, async () => textIn(await kept(stage, id), 'next.crt') !== '');
  await untilTrusted(stage, id);
  await newNodeConnects(stage);
  await age(stage, id, 'next', rootTimes.overlapMs + dayMs);
  await until(`${id} signs by its next root`, async () => textIn(await kept(stage, id), 'tls.key') !== before);
  await untilTrusted(stage, id);
  await newNodeConnects(stage);
  await age(stage, id, 'tls', rootTimes.overlapMs + rootTimes.formerMs + dayMs);
  await until(`${id} has left its former root`, async () => textIn(await kept(stage, id), 'former.crt') === '');
  await untilTrusted(stage, id);
  await newNodeConnects(stage);
}

export const rotated: Act = {
  name: 'the roots of the caller and of the gateway rotated',
  isLong: true,
  run: async (stage) => {
    const { loads } = await underLoad(stage, { from: 'west', name: 'cart', afterMs: 2000 }, async () => {
      for (const id of ['east', 'west'] as const) await rotate(stage, id);
    });
    const answer = await askEast(stage, pairIn(await kept(stage, 'west'))!);
    if (answer !== '200') throw new Error(`a certificate of the new root: ${answer}`);
    return none(loads);
  },
};

/** As the guide says of a stolen one: a few seconds after xds has started again. */
const replacedWithinMs = 10_000;

export const replaced: Act = {
  name: 'a stolen root of a caller replaced at once',
  isLong: true,
  run: async (stage, { slackMs }) => {
    const stolen = pairIn(await kept(stage, 'west'))!;
    const address = (await stage.addressIn('west', 'cart'))!;
    const opened = await stage.tell('west', { do: 'holdPlain', name: 'over', address, port: 81 });
    if (opened !== 'open') throw new Error(`a connection that stays: ${String(opened)}`);
    let [readyMs, refusedMs] = [0, 0];
    const { loads, atMs } = await underLoad(stage, { from: 'west', name: 'cart', afterMs: 3000 }, async () => {
      await stage.members.west.home.order({ remove: { apiVersion: 'v1', kind: 'Secret', metadata } });
      await stage.members.west.roles.xds.again();
      readyMs = Date.now();
      await until('the stolen root is refused', async () => (await askEast(stage, stolen)).startsWith('refused'));
      refusedMs = Date.now() - readyMs;
      await untilTrusted(stage, 'west');
    });
    const boundMs = replacedWithinMs + slackMs;
    if (refusedMs > boundMs) throw new Error(`the stolen root was refused after ${refusedMs} ms`);
    await until('the new root is admitted', async () => {
      const answer = await askEast(stage, pairIn(await kept(stage, 'west'))!);
      return answer === '200';
    });
    const { isClosed } = await stage.tell<{ isClosed: boolean }>('west', { do: 'held', name: 'over' });
    if (isClosed) throw new Error('a connection that was open has ended');
    await stage.tell('west', { do: 'letGo', name: 'over' });
    await pause(500);
    return `refused after ${refusedMs} ms; ${onlyWithin(loads, atMs, readyMs - atMs + boundMs)}`;
  },
};
