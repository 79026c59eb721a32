// The short form of `npm run check:gateways`.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../support/counterparts.ts';
import { acts, judgeCapture, prepare } from './acts.ts';
import { Stage } from './stage.ts';

describeWith(
  ['envoy', 'ip', 'nft', 'conntrack', 'curl'],
  'gateways: three clusters in networks that do not meet',
  () => {
    let stage: Stage;

    beforeAll(async () => {
      stage = await Stage.open();
      await prepare(stage);
    });

    afterAll(async () => {
      await stage?.close();
    });

    test.each(acts.filter(({ isLong }) => isLong !== true).map((act) => [act.name, act] as const))(
      '%s -> no more fails than is promised',
      async (_name, act) => {
        expect(await act.run(stage, { connections: 1500, slackMs: 2000 })).toBeTypeOf('string');
      },
    );

    test('all that passed between the networks -> TLS to the port of the gateways', async () => {
      expect(await judgeCapture(stage)).toContain('nothing else');
    });
  },
);
