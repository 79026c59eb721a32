// Certificates of a resolver's endpoint for stub zones, without anybody making them: its own is issued by the authority that
// joining left in the home, and renewed; who may post is read from the home, where the agent copies it from the broker.

import { errorText, type Log } from '../../base/log.ts';
import { repeat } from '../../base/repeat.ts';
import type { Timer, World } from '../../base/world.ts';
import { type Credentials, certificateFacts } from '../../base/x509/certificates.ts';
import { resolverAuthorityName, resolverAuthoritySecret } from '../../clusterset/membership/resolver-authority.ts';
import { readAddressPlan } from '../../clusterset/rules/address-plan.ts';
import { clusterSetDnsName } from '../../clusterset/rules/clusterset-dns.ts';
import type { StubCertificates, StubEndpoint } from '../../dns/config/config.ts';
import { posterName } from '../../federation/rules/poster.ts';
import type { Client } from '../../kube/client/client.ts';
import { dayMs, issueLeaf, makeAuthority, readKeptAuthority } from '../../kube/client/kept-authority.ts';
import { createInformer } from '../../kube/controller/informer.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';

export interface StubAccessOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  /** Names and addresses at which the endpoint is reached. */
  readonly hosts: readonly string[];
}

export type StubAccess = StubCertificates &
  Required<Pick<StubEndpoint, 'allowed' | 'mayPost' | 'onRenewed'>> & {
    /** Base64 of PEM: issues the certificate of the endpoint; empty until the home has told which that is. */
    caBundle(): string;
    stop(): void;
  };

const lifetimeMs = 30 * dayMs;
/** Timers of the runtime end after 24 days. */
const renewMs = 10 * dayMs;
const retryMs = 5000;

export async function openStubAccess({ world, log, home, hosts }: StubAccessOptions): Promise<StubAccess> {
  const at = { world, client: home, namespace: systemNamespace };
  const kept = { ...at, name: resolverAuthoritySecret, commonName: resolverAuthorityName };
  // A home that is away must not keep the resolver from starting: until it answers, the certificate is one that nobody trusts.
  let isKept = true;
  let authority = await openKept(kept).catch((error: unknown) => {
    log.warn('stub zones cannot be posted until the home has the authority of their certificates', {
      error: errorText(error),
    });
    isKept = false;
    return makeAuthority(kept);
  });
  const use = { kind: 'server', hosts } as const;
  const issue = () => issueLeaf(kept, authority, { commonName: 'portolan resolver', use, lifetimeMs });
  const listeners = new Set<(next: StubCertificates) => void>();
  let leaf: Credentials = issue();
  let posters: Readonly<Record<string, string>> = {};
  let retry: Timer | undefined;
  let isStopped = false;

  function current(): StubCertificates {
    const bundles = Object.values(posters).map((bundle) => Buffer.from(bundle, 'base64').toString('utf8'));
    const readable = bundles.filter(isCertificate);
    // Never empty, or every authority of the system would be trusted. Our own issues no client certificates.
    return { ...leaf, clientAuthority: [authority.certificate, ...readable].join('\n') };
  }

  function tell(): void {
    for (const listener of listeners) listener(current());
  }

  function openLater(): void {
    if (isStopped) return;
    retry = world.timers.after(retryMs, () => {
      openKept(kept).then((found) => {
        if (isStopped) return;
        authority = found;
        isKept = true;
        leaf = issue();
        tell();
      }, openLater);
    });
  }

  const informer = createInformer<ConfigMap>({
    ...{ client: home, world, log, type: configMapType, namespace: systemNamespace },
    fieldSelector: `metadata.name=${clusterSetDnsName}`,
  });
  informer.on((_key, next) => {
    const found = (next && readAddressPlan(next)?.authorities) ?? {};
    if (JSON.stringify(found) === JSON.stringify(posters)) return;
    posters = found;
    tell();
  });
  informer.start();
  const stopRenewing = repeat(world.timers, { everyMs: renewMs }, () => {
    leaf = issue();
    tell();
  });
  if (!isKept) openLater();
  return {
    ...current(),
    caBundle: () => (isKept ? Buffer.from(authority.certificate).toString('base64') : ''),
    allowed: [],
    mayPost: (identity, federation) => Object.hasOwn(posters, federation) && identity === posterName(federation),
    onRenewed: (listener) => {
      listeners.add(listener);
      // They may have come between opening and listening.
      listener(current());
      return () => listeners.delete(listener);
    },
    stop: () => {
      isStopped = true;
      stopRenewing();
      retry?.cancel();
      informer.stop();
    },
  };
}

/** Read, not made: a resolver need not be allowed to write Secrets. */
async function openKept(kept: Parameters<typeof readKeptAuthority>[0]): Promise<Credentials> {
  const found = await readKeptAuthority(kept);
  if (found === undefined) throw new Error('this cluster has not joined a clusterset yet; run portolan join');
  return found;
}

/** One that cannot be read must not take the endpoint away from the others. */
function isCertificate(pem: string): boolean {
  try {
    certificateFacts(pem);
    return true;
  } catch {
    return false;
  }
}
