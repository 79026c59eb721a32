import { describe, expect, test } from 'vitest';
import type { HttpRequest } from '../src/base/http.ts';
import { LossyNetwork, quiet } from './lossy.ts';
import { Simulation } from './virtual-world.ts';

function start() {
  const simulation = new Simulation({ seed: 1 });
  const { time } = simulation;
  const killed: string[] = [];
  const arrived: string[] = [];
  const { random } = simulation.world('lossy');
  const lossy = new LossyNetwork({ random, time, kill: (agent) => killed.push(`${agent} at ${arrived.length}`) });
  const carry = lossy.wrap(async ({ method, path }) => {
    arrived.push(`${method} ${path}`);
    return { status: 200, headers: {}, body: new Uint8Array() };
  });
  const send = (method: string, path = '/x') => {
    const request: HttpRequest = { method, path, headers: { authorization: 'Bearer agent-east' } };
    return carry(request);
  };
  return { lossy, time, send, killed, arrived };
}

describe('lossy network', () => {
  test('lossy network: requests get lost -> an error, and nothing was done', async () => {
    const { lossy, send, arrived } = start();
    lossy.rates = { ...quiet, lost: 1 };
    await expect(send('PUT')).rejects.toThrow('before the request arrived');
    expect(arrived).toEqual([]);
  });

  test('lossy network: answers get lost -> an error, though it was done', async () => {
    const { lossy, send, arrived } = start();
    lossy.rates = { ...quiet, unanswered: 1 };
    await expect(send('PUT')).rejects.toThrow('before the answer arrived');
    expect(arrived).toEqual(['PUT /x']);
  });

  test('lossy network: writes are repeated -> done twice, reads once', async () => {
    const { lossy, send, arrived } = start();
    lossy.rates = { ...quiet, repeated: 1 };
    await send('PUT');
    await send('GET');
    expect(arrived).toEqual(['PUT /x', 'PUT /x', 'GET /x']);
  });

  test('lossy network: requests are delayed -> some overtake others', async () => {
    const { lossy, time, send, arrived } = start();
    lossy.rates = { ...quiet, delayed: 1 };
    const paths = ['/1', '/2', '/3', '/4', '/5', '/6'];
    await time.settle(Promise.all(paths.map((path) => send('GET', path))));
    expect(arrived).toHaveLength(6);
    expect(arrived).not.toEqual(paths.map((path) => `GET ${path}`));
  });

  test('lossy network: a process is to die before its second write, or after it -> between exactly these two', async () => {
    for (const when of ['before', 'after'] as const) {
      const { lossy, send, killed } = start();
      lossy.crashes.push({ agent: 'east', inWrites: 2, when });
      for (const method of ['PUT', 'GET', 'PUT', 'PUT']) await send(method);
      expect(killed).toEqual([when === 'before' ? 'east at 2' : 'east at 3']);
    }
  });

  test('lossy network: calmed down -> nothing goes wrong any more', async () => {
    const { lossy, send, killed, arrived } = start();
    lossy.rates = { lost: 1, unanswered: 1, repeated: 1, delayed: 1 };
    lossy.crashes.push({ agent: 'east', inWrites: 1, when: 'before' });
    lossy.calmDown();
    await send('PUT');
    expect([killed, arrived]).toEqual([[], ['PUT /x']]);
  });
});
