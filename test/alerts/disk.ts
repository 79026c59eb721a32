// A home and its audit log on a disk that is really full.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from '../support/api-process.ts';
import type { Fault } from './fault.ts';
import type { Stage } from './stage.ts';

export const canMount = process.getuid?.() === 0;

export async function diskFaults(stage: Stage): Promise<Fault[]> {
  const mount = join(stage.folder, 'small');
  const ballast = join(mount, 'ballast');
  mkdirSync(mount);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', mount]);
  stage.onClose(() => execFileSync('umount', ['-l', mount]));
  const { kubeconfig } = await stage.startHome('small', {
    data: join(mount, 'home'),
    args: ['--audit', join(mount, 'audit.log')],
  });
  await stage.scrapeHome('small', kubeconfig);
  // A client of ours would try again and again.
  const connection = await connect(kubeconfig);
  stage.onClose(() => connection.close());
  const write = async (name: string) => {
    const object = { metadata: { name }, data: { value: 'x'.repeat(100_000) } };
    return (await connection.request('POST', '/api/v1/namespaces/default/configmaps', object)).status;
  };
  const fill = async () => {
    // A short write is the point.
    spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=64k', 'count=1000']);
    for (let index = 0; index < 100; index += 1) if ((await write(`m-${index}`)) !== 201) return;
    throw new Error('the home took 10 MB on a full disk');
  };
  return [
    {
      what: 'the disk of a home is full, then has room',
      alerts: { HomeNotWritable: 'home-small', AuditLogNotWritable: 'home-small' },
      make: fill,
      mend: async () => rmSync(ballast),
    },
  ];
}
