import { expect, test } from 'vitest';
import { silentLog } from './log.ts';
import { Parts } from './parts.ts';

test('parts: one fails to stop, one comes after the stop -> every one is stopped, the last started first', async () => {
  const stopped: string[] = [];
  const parts = new Parts(silentLog);
  parts.add('home', () => void stopped.push('home'));
  parts.add('broken', () => Promise.reject(new Error('no')));
  parts.add('agent', () => void stopped.push('agent'));
  await parts.stop();
  expect(stopped).toEqual(['agent', 'home']);
  parts.add('late', () => void stopped.push('late'));
  expect(stopped).toEqual(['agent', 'home', 'late']);
});
