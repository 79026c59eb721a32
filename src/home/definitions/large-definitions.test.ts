// Large definitions are checked over many turns of the event loop. Other requests come in between, and nothing is stored
// that was checked against an older state.

import { describe, expect, test } from 'vitest';
import type { AnyObject } from '../../kube/objects/object.ts';
import { createTestApi, type Reply, type TestApi, widgetDefinition } from '../testing/test-api.ts';

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const one = `${definitions}/widgets.example.com`;
const merge = { 'content-type': 'application/merge-patch+json' };

function large(fieldCount: number, prefix = 'f'): AnyObject {
  const definition = widgetDefinition();
  const properties = Object.fromEntries(
    Array.from({ length: fieldCount }, (_, at) => [`${prefix}${at}`, { type: 'string', description: 'x'.repeat(40) }]),
  );
  const spec = definition['spec'] as { versions: { schema: unknown }[] };
  for (const version of spec.versions) version.schema = { openAPIV3Schema: { type: 'object', properties } };
  return definition;
}

interface SlowApi extends TestApi {
  /** Lets turns of the event loop pass until the answer is there. */
  turnsUntil<T>(answer: Promise<T>): Promise<{ reply: T; turns: number }>;
}

/** A server whose clock moves whenever it is read, so that each piece of long work waits for a turn of its own. */
async function slowApi(): Promise<SlowApi> {
  const api = await createTestApi();
  const { clock, timers } = api.time.world;
  let nowMs = 0;
  clock.monotonicMs = () => (nowMs += 8);
  let turns = 0;
  const { after } = timers;
  timers.after = (delayMs, run) => {
    if (delayMs === 0) turns++;
    return after(delayMs, run);
  };
  const turnsUntil = async <T>(answer: Promise<T>) => {
    turns = 0;
    let isThere = false;
    void answer.finally(() => {
      isThere = true;
    });
    while (!isThere) await api.time.advance(1);
    return { reply: await answer, turns };
  };
  return { ...api, turnsUntil };
}

const statuses = (replies: readonly Reply[]) => replies.map(({ status }) => status);

describe('a large definition', () => {
  test('created -> the check takes turns in proportion to its size', async () => {
    const small = await slowApi();
    const big = await slowApi();
    const few = await small.turnsUntil(small.send(`POST ${definitions}`, large(500)));
    const many = await big.turnsUntil(big.send(`POST ${definitions}`, large(4000)));
    expect(statuses([few.reply, many.reply])).toEqual([201, 201]);
    expect(many.turns).toBeGreaterThan(few.turns + 40);
  });

  test('created twice at once -> the first one stays, the second is told', async () => {
    const { send, ok, turnsUntil } = await slowApi();
    const { reply } = await turnsUntil(
      Promise.all(['a', 'b'].map((prefix) => send(`POST ${definitions}`, large(1000, prefix)))),
    );
    expect(statuses(reply).toSorted()).toEqual([201, 409]);
    const winner = reply[0]!.status === 201 ? 'a0' : 'b0';
    const stored = (await turnsUntil(ok(`GET ${one}`))).reply;
    expect(stored.spec.versions[0].schema.openAPIV3Schema.properties).toHaveProperty(winner);
  });

  test('updated twice at once from the same resourceVersion -> one is stored whole, the other gets a conflict', async () => {
    const { send, ok, api, turnsUntil } = await slowApi();
    await turnsUntil(ok(`POST ${definitions}`, large(1000)).then(() => api.whenIdle()));
    const { resourceVersion } = (await turnsUntil(ok(`GET ${one}`))).reply.metadata;
    const put = (prefix: string) => {
      const next = large(1000, prefix);
      next.metadata.resourceVersion = resourceVersion;
      return send(`PUT ${one}`, next);
    };
    const { reply } = await turnsUntil(Promise.all([put('a'), put('b')]));
    expect(statuses(reply).toSorted()).toEqual([200, 409]);
    expect(reply.find(({ status }) => status === 409)!.body.reason).toBe('Conflict');
    const stored = (await turnsUntil(ok(`GET ${one}`))).reply;
    expect(Object.keys(stored.spec.versions[0].schema.openAPIV3Schema.properties)).toHaveLength(1000);
    expect(stored.metadata.generation).toBe(2);
  });

  test('patched in two places at once -> both patches are in it', async () => {
    const { ok, api, turnsUntil } = await slowApi();
    await turnsUntil(ok(`POST ${definitions}`, large(1000)).then(() => api.whenIdle()));
    const label = (name: string) => ok(`PATCH ${one}`, { metadata: { labels: { [name]: 'x' } } }, merge);
    await turnsUntil(Promise.all([label('a'), label('b')]));
    const { labels } = (await turnsUntil(ok(`GET ${one}`))).reply.metadata;
    expect(labels).toEqual({ a: 'x', b: 'x' });
  });

  test('deleted while an update is being checked -> not found, and not created again', async () => {
    const { send, ok, api, turnsUntil } = await slowApi();
    await turnsUntil(ok(`POST ${definitions}`, large(1000)).then(() => api.whenIdle()));
    const updating = send(`PUT ${one}`, large(4000, 'g'));
    const deleting = send(`DELETE ${one}`).then(async (reply) => {
      await api.whenIdle();
      return reply;
    });
    const { reply } = await turnsUntil(Promise.all([updating, deleting]));
    expect(statuses(reply)).toEqual([404, 200]);
    expect((await turnsUntil(send(`GET ${one}`))).reply.status).toBe(404);
  });

  test('as a dry run -> answered, and nothing is stored', async () => {
    const { send, turnsUntil } = await slowApi();
    expect((await turnsUntil(send(`POST ${definitions}?dryRun=All`, large(1000)))).reply.status).toBe(201);
    expect((await turnsUntil(send(`GET ${one}`))).reply.status).toBe(404);
  });

  test('wrong somewhere -> refused with its path, and nothing is stored', async () => {
    const { send, turnsUntil } = await slowApi();
    const definition = large(1000);
    // biome-ignore lint/suspicious/noExplicitAny: the test reaches into the schema.
    const { versions } = (definition as any).spec;
    versions[1].schema.openAPIV3Schema = { type: 'object', properties: { wrong: {} } };
    const { reply } = await turnsUntil(send(`POST ${definitions}`, definition));
    expect(reply.status).toBe(422);
    expect(reply.body.details.causes.map(({ field }: { field: string }) => field)).toEqual([
      'spec.versions[1].schema.openAPIV3Schema.properties[wrong].type',
    ]);
    expect((await turnsUntil(send(`GET ${one}`))).reply.status).toBe(404);
  });
});
