import { describe, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { createLog, silentLog } from '../../base/log.ts';
import { createMetrics } from '../../base/metrics.ts';
import { isIssuedBy, issueCertificate } from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';
import { createMemoryStore } from '../open-store.ts';
import { answerHealth } from '../request/paths.ts';
import { rotateAuthority } from './authority.ts';
import { watchAuthority } from './authority-end.ts';
import { openPki } from './pki.ts';
import { PkiFiles } from './pki-files.ts';

const dayMs = 24 * 60 * 60 * 1000;

function start() {
  const simulation = new Simulation({ seed: 1 });
  const world = simulation.world('home');
  const options = { world, directory: '/data', log: silentLog };
  const open = () => openPki({ ...options, hosts: ['localhost'], authorityLookMs: 1_000 });
  return { simulation, world, options, open, files: new PkiFiles(options) };
}

describe('authority', () => {
  test('authority: each step of a rotation while the home runs -> trusted by both, issued by the new one, then the new one alone', async () => {
    const { simulation, options, open } = start();
    const pki = await open();
    const old = pki.clientCa;
    const step = async (name: 'begin' | 'switch' | 'finish') => {
      await rotateAuthority(options, name);
      await simulation.time.advance(2_000);
    };
    await step('begin');
    expect(pki.clientCa.startsWith(old.trimEnd())).toBe(true);
    expect(isIssuedBy(pki.serverCredentials().certificate, old)).toBe(true);
    await step('switch');
    expect(pki.clientCa).toContain(old.trim());
    expect(isIssuedBy(pki.serverCredentials().certificate, old)).toBe(false);
    await step('finish');
    expect(pki.clientCa).not.toContain(old.trim());
    expect(isIssuedBy(pki.serverCredentials().certificate, pki.clientCa)).toBe(true);
    pki.close();
  });

  test('authority: closed while it looks at its files -> it does not look again, so that the process can end', async () => {
    const { world, options } = start();
    const due: (() => void)[] = [];
    const timers = {
      after: (_delayMs: number, run: () => void) => ({ cancel: () => void due.splice(0), at: due.push(run) }),
    };
    const pki = await openPki({
      ...options,
      world: { ...world, timers },
      hosts: ['localhost'],
      authorityLookMs: 1_000,
    });
    const look = due.pop()!;
    due.length = 0;
    look();
    pki.close();
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(due).toEqual([]);
  });

  test('authority: a switch that broke off between key and certificate -> completed by the next who opens it', async () => {
    const { options, open, files } = start();
    (await open()).close();
    await rotateAuthority(options, 'begin');
    const next = await files.read('ca-next.crt');
    await files.write('ca-old.crt', (await files.read('ca.crt'))!);
    await files.write('ca.key', (await files.read('ca-next.key'))!);
    const pki = await open();
    expect(await files.read('ca.crt')).toBe(next);
    expect(await files.read('ca-next.crt')).toBeUndefined();
    expect(isIssuedBy(pki.serverCredentials().certificate, next!)).toBe(true);
    pki.close();
  });

  test('authority: from 90 days before its end -> said in the log every day, in health and as a metric', async () => {
    const { simulation, world } = start();
    const endsMs = world.clock.wallMs() + 91 * dayMs;
    const lines: string[] = [];
    const log = createLog({ clock: world.clock, level: 'info', write: (line) => void lines.push(line) });
    const metrics = createMetrics();
    const times = { serial: Buffer.from('01', 'hex'), notBeforeMs: world.clock.wallMs(), notAfterMs: endsMs - dayMs };
    const key = generatePrivateKey();
    const certificate = issueCertificate({
      subject: { commonName: 'home' },
      key,
      use: { kind: 'authority' },
      ...times,
    });
    const pki = {
      clientCa: '',
      authorityEndsMs: () => endsMs,
      serverCredentials: () => ({ certificate, key }),
      onRenewed: () => () => {},
    };
    const authority = watchAuthority({ pki, world, log, metrics });
    await simulation.time.advance(dayMs / 2);
    expect([authority.warning(), lines]).toEqual([undefined, []]);
    await simulation.time.advance(2 * dayMs);
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain('portolan api rotate-ca');
    expect(await metrics.text()).toContain(
      `portolan_certificate_expiry_timestamp_seconds{certificate="home-authority"} ${endsMs / 1000}`,
    );
    expect(await metrics.text()).toContain(`{certificate="home-serving"} ${(endsMs - dayMs) / 1000}`);
    const warnings = () => [authority.warning() ?? ''];
    const state = { store: createMemoryStore({ world }), waitsFor: () => undefined, warnings };
    const { status, body } = answerHealth('readyz', state, new URLSearchParams('verbose'));
    expect([status, Buffer.from(body as Uint8Array).toString()]).toEqual([
      200,
      expect.stringContaining('[!]the certificate authority of this home ends on'),
    ]);
    authority.stop();
  });
});
