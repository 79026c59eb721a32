import { expect, test } from 'vitest';
import { account, openHome } from '../../home/security/testing/home.ts';
import { flowTicketAccount, ticketAccount, ticketAudience } from '../objects/admin-ticket.ts';
import { ApiError } from '../objects/api-error.ts';
import { requestToken } from './account-token.ts';
import { type Client, createClient } from './client.ts';
import { createTicketCheck, type TicketCheck } from './ticket-check.ts';

const pod = 'portolan-dns-7f-x';

function withKind(check: TicketCheck) {
  return (ticket: string, kind: Parameters<TicketCheck>[1] = 'admin') => check(ticket, kind);
}

/** A home with the account of callers and another one; reviews can be counted, held and refused. */
async function open() {
  const home = await openHome();
  const identity = { clientCertificate: { commonName: 'admin', organizations: ['system:masters'] } };
  const world = home.simulation.world('part');
  const client = createClient(
    { send: (request) => home.handle({ ...request, ...identity }), close: () => {} },
    { world, userAgent: 'test' },
  );
  for (const name of [ticketAccount.name, flowTicketAccount.name, 'another'])
    await home.given(account(`portolan-system/${name}`));
  const reviews: string[] = [];
  let gate: Promise<void> = Promise.resolve();
  const part: Client = {
    ...client,
    create: async (type, object, options) => {
      reviews.push(type.kind);
      await gate;
      return client.create(type, object, options);
    },
  };
  const ticket = async (name: string, place: string) => {
    const audiences = [ticketAudience(place)];
    return (await requestToken(client, { namespace: 'portolan-system', name, lifetimeMs: 600_000, audiences })).token;
  };
  return {
    home,
    reviews,
    ticket,
    check: withKind(createTicketCheck({ client: part, clock: world.clock, places: () => [pod] })),
    hold: (until: Promise<void>) => {
      gate = until;
    },
  };
}

test('ticket check: a ticket for this part -> good, and asked about once a minute', async () => {
  const { check, ticket, reviews, home } = await open();
  const good = await ticket(ticketAccount.name, pod);
  expect([await check(good), await check(good)]).toEqual([undefined, undefined]);
  expect(reviews).toEqual(['TokenReview']);
  await home.simulation.time.advance(61_000);
  expect(await check(good)).toBeUndefined();
  expect(reviews).toHaveLength(2);
  await home.simulation.time.advance(600_000);
  expect(await check(good)).toEqual({ status: 401, why: 'the ticket is not valid, or not any more' });
});

test('ticket check: the account of callers is deleted -> its tickets end within a minute', async () => {
  const { check, ticket, home } = await open();
  const good = await ticket(ticketAccount.name, pod);
  expect(await check(good)).toBeUndefined();
  await home.admin(`DELETE /api/v1/namespaces/portolan-system/serviceaccounts/${ticketAccount.name}`);
  await home.simulation.time.advance(61_000);
  expect((await check(good))?.status).toBe(401);
});

test('ticket check: a ticket for another part, a token for the API server, any text -> 401 without a question', async () => {
  const { check, ticket, reviews, home } = await open();
  const forApi = await home.token(`portolan-system/${ticketAccount.name}`);
  const texts = [
    '',
    'x',
    '..',
    'a.bm90anNvbg.c',
    `a.${Buffer.from('null').toString('base64url')}.c`,
    'x'.repeat(9_000),
  ];
  for (const text of [await ticket(ticketAccount.name, 'portolan-proxy-1'), forApi, ...texts])
    expect(await check(text)).toEqual({ status: 401, why: 'the ticket is not one for this part' });
  expect(reviews).toEqual([]);
});

test('ticket check: one of another account, or with another signature -> refused, and asked about once', async () => {
  const { check, ticket, reviews } = await open();
  const others = await ticket('another', pod);
  const why = 'the ticket is a token of system:serviceaccount:portolan-system:another';
  expect(await check(others)).toEqual({ status: 403, why: expect.stringContaining(why) });
  const forged = (await ticket(ticketAccount.name, pod)).replace(/\.[^.]+$/, `.${'A'.repeat(86)}`);
  expect((await check(forged))?.status).toBe(401);
  expect((await check(forged))?.status).toBe(401);
  expect(reviews).toHaveLength(2);
});

test('ticket check: tickets for flows open flows alone, and others all but flows, asked about once', async () => {
  const { check, ticket, reviews } = await open();
  const [admin, flows] = [await ticket(ticketAccount.name, pod), await ticket(flowTicketAccount.name, pod)];
  expect([await check(flows, 'flows'), await check(admin, 'admin')]).toEqual([undefined, undefined]);
  expect([(await check(flows, 'admin'))?.status, (await check(admin, 'flows'))?.status]).toEqual([403, 403]);
  expect(reviews).toHaveLength(2);
});

test('ticket check: many at once -> four are asked about, the others get 429', async () => {
  const { check, ticket, reviews, hold } = await open();
  const good = await ticket(ticketAccount.name, pod);
  let release = () => {};
  hold(new Promise((resolve) => (release = resolve)));
  const all = Array.from({ length: 20 }, (_, i) => check(`${good.replace(/\.[^.]+$/, '')}.${i}`));
  release();
  const statuses = (await Promise.all(all)).map((refusal) => refusal?.status);
  expect([statuses.filter((one) => one === 401).length, statuses.filter((one) => one === 429).length]).toEqual([4, 16]);
  expect(reviews).toHaveLength(4);
  expect(await check(good)).toBeUndefined();
});

test.each([
  [
    new ApiError('POST /x: cannot create', { code: 403, reason: 'Forbidden' }),
    /may not create tokenreviews.*portolan install/,
  ],
  [
    new Error('connect ECONNREFUSED 10.9.8.7:6443'),
    /^the ticket cannot be checked: the home does not answer this part$/,
  ],
])(
  'ticket check: the home says %s -> 503 without its words, and the next one is asked about again',
  async (error, why) => {
    const { ticket, home } = await open();
    const client = { create: () => Promise.reject(error) } as unknown as Client;
    const { clock } = home.simulation.world('part');
    const check = withKind(createTicketCheck({ client, clock, places: () => [pod] }));
    const good = await ticket(ticketAccount.name, pod);
    expect(await check(good)).toEqual({ status: 503, why: expect.stringMatching(why) });
  },
);
