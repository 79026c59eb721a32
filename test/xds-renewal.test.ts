// Certificates of proxies that end while they run: with `xds renew` beside it an Envoy stays connected, without it it does not.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { createRealWorld } from '../src/base/real/world.ts';
import { namespace } from '../src/peering/testing/edge/memory-home.ts';
import { issueProxy, openAuthority } from '../src/xds/identity/authority.ts';
import { bootstrapFile, identityFile, identityText, lifeOf } from '../src/xds/identity/proxy-files.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { portolan, runPortolan } from './support/portolan.ts';
import { cluster, startXdsTest, type XdsTest } from './support/xds.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Issued as of five minutes ago, so that two thirds are over at once. */
const lifetimeMs = 120_000;

/** A folder as `xds bootstrap --directory` writes it, with a certificate that ends in a moment. */
async function prepare(xds: XdsTest, name: string): Promise<{ directory: string; endMs: number }> {
  const directory = mkdtempSync(join(tmpdir(), `portolan-renewal-${name}-`));
  closing.push(() => rmSync(directory, { recursive: true, force: true }));
  const at = { world: createRealWorld(), home: xds.client, namespace, cluster };
  const identity = { role: 'sidecar', cluster, name } as const;
  const authority = await openAuthority(at);
  const pair = issueProxy(at, authority, identity, lifetimeMs);
  const file = join(directory, identityFile);
  writeFileSync(file, identityText(pair));
  const server = { kind: 'tls', host: '127.0.0.1', port: xds.role.port, identity: { file } } as const;
  const bootstrap = await xds.bootstrap('sidecar', name, { server: { ...server, authority: authority.certificate } });
  writeFileSync(join(directory, bootstrapFile), JSON.stringify(bootstrap));
  return { directory, endMs: lifeOf(pair.certificate).endMs };
}

function startEnvoy(directory: string): void {
  const args = ['-c', join(directory, bootstrapFile), '--concurrency', '1', '-l', 'warning', '--use-dynamic-base-id'];
  const envoy = spawn(pathOf('envoy')!, args, { stdio: 'ignore' });
  closing.push(() => envoy.kill('SIGKILL'));
}

describeWith(['envoy'], 'xds: certificates of proxies', () => {
  test('a certificate ends -> renewed in time the proxy stays, unrenewed it is refused, counted and reported', async () => {
    let aheadMs = 0;
    const real = createRealWorld();
    const world = { ...real, clock: { ...real.clock, wallMs: () => real.clock.wallMs() + aheadMs } };
    const changes = { world, ports: { virtual: 0, ingress: 0 }, proxyCertificateMs: 3_600_000 };
    const xds = await startXdsTest(changes);
    closing.push(() => xds.stop());
    const kept = await prepare(xds, 'kept');
    const left = await prepare(xds, 'left');
    startEnvoy(kept.directory);
    startEnvoy(left.directory);
    const report = (name: string) =>
      xds.role.service.proxies.reports().find(({ id }) => id === `sidecar~${cluster}~${name}`);
    const isConnected = (name: string) => report(name)?.isConnected === true;
    const patient = { timeout: 60_000, interval: 50 };
    await expect.poll(() => isConnected('kept') && isConnected('left'), patient).toBe(true);
    expect(await xds.metrics.text()).toContain('portolan_xds_proxy_certificates_due 2');

    const renewing = spawn(portolan, ['xds', 'renew', '--directory', kept.directory], { stdio: 'pipe' });
    closing.push(() => renewing.kill('SIGKILL'));
    let printed = '';
    for (const stream of [renewing.stdout, renewing.stderr]) stream.on('data', (chunk) => (printed += chunk));
    await expect.poll(() => printed, patient).toContain(`renewed ${kept.directory}/${identityFile}`);
    expect(statSync(join(kept.directory, identityFile)).mode & 0o777).toBe(0o600);
    expect(await xds.metrics.text()).toContain('portolan_xds_proxy_certificates_due 1');

    // Now those that both started with are over.
    aheadMs = 2 * lifetimeMs;
    await expect.poll(() => isConnected('left'), patient).toBe(false);
    await expect
      .poll(() => isConnected('kept') && report('kept')!.streams[0]!.sinceMs > left.endMs, patient)
      .toBe(true);
    expect(isConnected('left')).toBe(false);
    await expect
      .poll(() => xds.metrics.text(), patient)
      .toMatch(/portolan_xds_turned_away_total\{reason="certificate"\} [1-9]/);
    const late = await runPortolan(['xds', 'renew', '--once', '--directory', left.directory]);
    expect(late.code).not.toBe(0);
    expect(late.err).toMatch(/did not renew the certificate: .*the certificate is valid from/);
  });
});
