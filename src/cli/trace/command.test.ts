import { expect, test } from 'vitest';
import { serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { simulatedMember } from '../testing/simulated-member.ts';
import { addTraceCommand } from './command.ts';

test('trace: a service that nobody exports, with a name near to one that is known -> exit code 4, and names that one', async () => {
  const member = await simulatedMember({ clusters: ['west', 'east'] });
  const metadata = { name: 'checkout', namespace: 'shop' };
  const { group, version, kind } = serviceExportType;
  await member.home.admin.create(serviceExportType, { apiVersion: `${group}/${version}`, kind, metadata });
  const mistyped = await member.run(addTraceCommand, 'trace shop/chekout');
  expect(mistyped).toMatchObject({ exitCode: 4 });
  expect(mistyped.out).toBe(
    'trace shop/chekout: no cluster exports it; run portolan export shop/chekout where it runs; did you mean shop/checkout?',
  );
  expect((await member.run(addTraceCommand, 'trace shop/payments')).out).not.toContain('did you mean');
});
