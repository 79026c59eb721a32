// Parts of one cluster whose home is started after them: its resolver, its peering and its discovery server.

import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import packet from 'dns-packet';
import { issueCertificate } from '../../src/base/x509/certificates.ts';
import { generatePrivateKey } from '../../src/base/x509/edge/keys.ts';
import { askUdp } from '../../src/dns/testing/edge/client.ts';
import { systemNamespace } from '../../src/kube/objects/ours.ts';
import { issueProxy, openAuthority, xdsServerName } from '../../src/xds/identity/authority.ts';
import { identityFile, identityText } from '../../src/xds/identity/proxy-files.ts';
import { type DnsProcess, startDnsProcess } from '../support/dns-process.ts';
import { freePort } from '../support/free-port.ts';
import { runPortolan } from '../support/portolan.ts';
import { clusters, connect, node } from '../support/xds-stream.ts';
import type { Fault } from './fault.ts';
import { type Stage, world } from './stage.ts';

const cluster = 'late';
const dayMs = 86_400_000;

export async function lateHomeFaults(stage: Stage): Promise<Fault[]> {
  const port = await freePort();
  // It writes its keys and its kubeconfig.
  const first = await stage.startHome(cluster, { port });
  await first.stop('SIGTERM');
  const { kubeconfig } = first;
  const upstreamPort = await freePort();
  let dns: DnsProcess;
  const startDns = async () => {
    const forward = [
      '--forward',
      `127.0.0.1:${upstreamPort}`,
      '--forward-resend-ms',
      '200',
      '--forward-timeout-ms',
      '500',
    ];
    dns = await startDnsProcess([
      '--cluster-id',
      cluster,
      '--kubeconfig',
      kubeconfig,
      ...forward,
      '--log-level',
      'error',
    ]);
    stage.onClose(() => dns.stop('SIGKILL'));
    await stage.scrape({ name: 'dns-late', url: dns.admin });
  };
  return [
    {
      what: 'a resolver runs before its home, which comes up later',
      alerts: { PartNotReady: 'dns-late', HomeUnreachable: 'dns-late' },
      make: startDns,
      mend: () => stage.startHome(cluster, { port }),
    },
    peeringCertificate(stage, kubeconfig),
    proxyCertificate(stage, kubeconfig),
    deadUpstream(stage, { upstreamPort, resolver: () => dns.target }),
  ];
}

/** Given as a file, so nothing renews it. */
function peeringCertificate(stage: Stage, kubeconfig: string): Fault {
  const domain = 'late.example';
  const file = (name: string) => join(stage.folder, `peering-${name}.pem`);
  const subject = { commonName: domain };
  const [authorityKey, key] = [generatePrivateKey(), generatePrivateKey()];
  const times = (days: number) => ({
    serial: randomBytes(16),
    notBeforeMs: Date.now() - dayMs,
    notAfterMs: Date.now() + days * dayMs,
  });
  const writeCertificate = (days: number) => {
    const use = { kind: 'identity', uris: [`spiffe://${domain}/peering`] } as const;
    const issuer = { subject, key: authorityKey };
    writeFileSync(file('certificate'), issueCertificate({ subject, key, issuer, use, ...times(days) }));
  };
  return {
    what: 'a given certificate ends in three days, then is replaced',
    alerts: { CertificateOverdue: 'peering-late' },
    make: () => {
      const bundle = issueCertificate({ subject, key: authorityKey, use: { kind: 'authority' }, ...times(300) });
      writeFileSync(file('bundle'), bundle);
      writeFileSync(file('key'), key, { mode: 0o600 });
      writeCertificate(3);
      const files = ['--cert', file('certificate'), '--key', file('key'), '--bundle', file('bundle')];
      const own = ['--kubeconfig', kubeconfig, '--trust-domain', domain, '--listen', '127.0.0.1:0'];
      return stage.startPart('peering-late', ['peering', ...own, ...files]);
    },
    mend: async () => writeCertificate(300),
  };
}

/** Two thirds of its life are over: certificates are valid from five minutes before they are issued. */
const proxyLifeMs = 120_000;

function proxyCertificate(stage: Stage, kubeconfig: string): Fault {
  const directory = join(stage.folder, 'proxy');
  const identity = { role: 'sidecar', cluster, name: 'one' } as const;
  const own = ['--kubeconfig', kubeconfig, '--cluster-id', cluster];
  return {
    what: 'a connected proxy does not renew its certificate, then does',
    alerts: { ProxyCertificateOverdue: 'xds-late' },
    make: async () => {
      const ports = ['--virtual-port', '0', '--ingress-port', '0'];
      const xds = await stage.startPart('xds-late', ['xds', ...own, ...ports, '--listen', '127.0.0.1:0']);
      const server = `127.0.0.1:${/^ready (\d+)$/m.exec(xds.out())![1]}`;
      mkdirSync(directory);
      const role = ['--role', identity.role, '--name', identity.name];
      await done(['xds', 'bootstrap', ...own, ...role, '--server', server, '--directory', directory]);
      const home = await stage.clientOf(kubeconfig);
      const at = { world, home, namespace: systemNamespace, cluster };
      const authority = await openAuthority(at);
      const pair = issueProxy(at, authority, identity, proxyLifeMs);
      writeFileSync(join(directory, identityFile), identityText(pair));
      const tls = { ca: authority.certificate, cert: pair.certificate, key: pair.key, servername: xdsServerName };
      const stream = connect(`https://${server}`, tls);
      stage.onClose(() => stream.close());
      stream.send({ ...node(`${identity.role}~${cluster}~${identity.name}`), ...clusters });
      await stream.next();
    },
    mend: () => done(['xds', 'renew', '--once', '--directory', directory]),
  };
}

async function done(args: readonly string[]): Promise<void> {
  const { code, out, err } = await runPortolan(args);
  if (code !== 0) throw new Error(`portolan ${args.join(' ')} ended with ${code}: ${out}${err}`);
}

interface Upstream {
  readonly upstreamPort: number;
  resolver(): DnsProcess['target'];
}

/** Clients ask all the time, for another name each time. */
function deadUpstream(stage: Stage, { upstreamPort, resolver }: Upstream): Fault {
  let asked = 0;
  const ask = () => askUdp(resolver(), `name-${++asked}.example A`).catch(() => {});
  return {
    what: 'no upstream server answers, then one does',
    alerts: { DnsFailures: 'other' },
    make: async () => {
      const asking = setInterval(ask, 200);
      stage.onClose(() => clearInterval(asking));
    },
    mend: async () => {
      const socket = createSocket('udp4');
      stage.onClose(() => socket.close());
      socket.on('message', (bytes, { port, address }) => {
        const { id, questions = [] } = packet.decode(bytes);
        const answers = [{ type: 'A' as const, name: questions[0]!.name, ttl: 60, data: '203.0.113.1' }];
        socket.send(packet.encode({ type: 'response', id, questions, answers }), port, address);
      });
      socket.bind(upstreamPort, '127.0.0.1');
    },
  };
}
