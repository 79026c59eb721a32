// Certificates from files: when the new ones are taken, and when the earlier ones stay.

import { expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { makeAuthority } from '../../dns/testing/edge/certs.ts';
import { silentLog } from '../log.ts';
import { followCertificateFiles } from './certificate-files.ts';

test('certificate files: renewed -> taken within ten seconds; half written or gone -> the earlier pair stays', async () => {
  const simulation = new Simulation({ seed: 1 });
  const authority = makeAuthority('test authority');
  const issue = (name: string) => authority.issue(name, { kind: 'server', hosts: ['127.0.0.1'] });
  const [first, second, third] = [issue('first'), issue('second'), issue('third')];
  let files: typeof first | undefined = first;
  const taken: unknown[] = [];
  const stop = followCertificateFiles({
    ...{ world: simulation.world('dns'), log: silentLog, first },
    read: async () => files ?? Promise.reject(new Error('no such file')),
    onChange: (next) => void taken.push(next),
  });
  await simulation.time.advance(30_000);
  expect(taken).toEqual([]);
  files = { certificate: second.certificate, key: first.key };
  await simulation.time.advance(20_000);
  expect(taken).toEqual([]);
  files = second;
  await simulation.time.advance(10_000);
  expect(taken).toEqual([second]);
  files = undefined;
  await simulation.time.advance(20_000);
  files = third;
  await simulation.time.advance(10_000);
  expect(taken).toEqual([second, third]);
  stop();
  files = first;
  await simulation.time.advance(60_000);
  expect(taken).toHaveLength(2);
});
