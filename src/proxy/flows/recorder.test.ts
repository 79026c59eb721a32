import { describe, expect, test } from 'vitest';
import { parseConntrackEvent } from './conntrack-event.ts';
import type { Flow } from './flow.ts';
import { FlowLog } from './flow-log.ts';
import { FlowRecorder } from './recorder.ts';

const atSeconds = 1_795_019_455;
const request = 'src=10.1.0.2 dst=243.9.0.1 sport=56186 dport=80';
const answer = 'src=10.2.0.2 dst=10.1.0.2 sport=8080 dport=56186';
const event = (kind: string, rest: string, second = 0) =>
  `[${atSeconds + second}.250000]\t${kind.padStart(9)} tcp      6 ${rest}`;

const started = event('[NEW]', `1 SYN_SENT ${request} [UNREPLIED] ${answer} id=7`);
const answered = event('[UPDATE]', `60 SYN_RECV ${request} ${answer} id=7`, 1);
const ended = event(
  '[DESTROY]',
  `${request} packets=6 bytes=393 ${answer} packets=4 bytes=256 [ASSURED] delta-time=1 id=7`,
  60,
);
const refused = event(
  '[DESTROY]',
  `1 CLOSE ${request} packets=1 bytes=60 [UNREPLIED] ${answer} packets=1 bytes=40 id=7`,
);
const silent = event(
  '[DESTROY]',
  `SYN_SENT ${request} packets=1 bytes=60 [UNREPLIED] ${answer} packets=0 bytes=0 id=7`,
  1,
);

const owners = {
  serviceAt: (address: string) => (address === '243.9.0.1' || address === 'fd00::1' ? 'shop/web' : undefined),
  ownerOf: (service: string, endpoint: string) => ({
    service,
    cluster: endpoint === '10.2.0.2 8080' ? 'west' : '',
    region: '',
    zone: '',
    way: 'direct' as const,
  }),
};

const nowMs = 1000 * (atSeconds + 2);
function record(lines: readonly string[], options = {}): Flow[] {
  const recorder = new FlowRecorder(owners, options);
  for (const line of lines) recorder.line(line, nowMs);
  return recorder.page(undefined, {}, nowMs).flows;
}

const summary = (flows: readonly Flow[]) =>
  flows.map(({ outcome, cluster, answeredAfterMs, startedMs, endedMs, sent, received }) =>
    [
      ...[outcome, cluster, `answer ${answeredAfterMs}`, `open ${endedMs && startedMs && endedMs - startedMs}`],
      `${sent?.bytes}/${received?.bytes}`,
    ].join(' '),
  );

describe('flows', () => {
  test.each([
    [
      'answered, then ended',
      [started, answered, ended],
      ['answered west answer 1000 open undefined undefined/undefined', 'answered west answer 1000 open 60000 393/256'],
    ],
    ['refused with a reset', [started, refused], ['refused west answer undefined open 0 60/40']],
    ['never answered', [started, silent], ['no-answer west answer undefined open 1000 60/0']],
    [
      'its start was not seen -> its end is told without one',
      [ended],
      ['answered west answer undefined open undefined 393/256'],
    ],
    [
      'another answer of the same -> told once',
      [started, answered, answered],
      ['answered west answer 1000 open undefined undefined/undefined'],
    ],
    ['only a start -> nothing is known yet', [started], []],
    [
      'the kernel uses the id again',
      [started, silent, started, answered],
      [
        'no-answer west answer undefined open 1000 60/0',
        'answered west answer 1000 open undefined undefined/undefined',
      ],
    ],
  ])('%s', (_what, lines, expected) => {
    expect(summary(record(lines))).toEqual(expected);
  });

  test('an address that no import has, and lines that make no sense -> left out', () => {
    const foreign = [started, answered].map((line) => line.replaceAll('243.9.0.1', '10.9.9.9'));
    expect(record([...foreign, '', 'x dst=243.9.0.1 y', `[1.2] [NEW] dst=243.9.0.1 ${'x'.repeat(5000)}`])).toEqual([]);
  });

  test('IPv6 addresses are told in their shortest form', () => {
    const long = (line: string) =>
      line
        .replaceAll('243.9.0.1', 'fd00:0000:0000:0000:0000:0000:0000:0001')
        .replaceAll('10.1.0.2', 'fd01:0000:0000:0000:0000:0000:0000:0002');
    const [flow] = record([started, answered].map(long));
    expect(flow).toMatchObject({ address: 'fd00::1', client: 'fd01::2' });
  });

  test('more are open than may be -> of the oldest only the end is told, without its start', () => {
    const other = (line: string, id: number) => line.replace('id=7', `id=${id}`);
    const flows = record([started, other(started, 8), other(started, 9), answered, ended, other(answered, 9)], {
      openLimit: 2,
    });
    expect(flows.map(({ startedMs, endedMs }) => [startedMs !== undefined, endedMs !== undefined])).toEqual([
      [false, true],
      [true, false],
    ]);
  });

  test('no answer for three seconds -> told before the kernel forgets it; a late answer is told after all', () => {
    const recorder = new FlowRecorder(owners);
    const page = (seconds: number) => summary(recorder.page(0, {}, 1000 * (atSeconds + seconds)).flows);
    recorder.line(started, 1000 * atSeconds);
    expect(page(3)).toEqual([]);
    expect(page(3.3)).toEqual(['no-answer west answer undefined open undefined undefined/undefined']);
    expect(page(9), 'once').toHaveLength(1);
    recorder.line(event('[UPDATE]', `60 SYN_RECV ${request} ${answer} id=7`, 10), 1000 * (atSeconds + 10));
    expect(page(10)[1]).toBe('answered west answer 10000 open undefined undefined/undefined');
  });

  test('udp has no state', () => {
    const line = `[${atSeconds}.5]\t    [NEW] udp      17 30 ${request} [UNREPLIED] ${answer} id=9`;
    expect(parseConntrackEvent(line)).toMatchObject({ protocol: 'udp', kind: 'NEW', isReplied: false, id: '9' });
  });
});

describe('the log of flows', () => {
  const flow = (id: number, more: Partial<Flow> = {}): Flow => ({ ...record([started, answered])[0]!, id, ...more });
  const limits = { entriesMax: 5, keptMs: 1000, pageMax: 2 };
  const ids = (flows: readonly Flow[]) => flows.map(({ id }) => id).join();

  test('pages follow each other without gap or repetition; what has no room is counted', () => {
    const log = new FlowLog(limits);
    for (let id = 1; id <= 4; id += 1) log.note(flow(id), 0);
    const first = log.page(0, {}, 0);
    expect([ids(first.flows), first.next, first.hasMore, first.forgotten]).toEqual(['1,2', 2, true, 0]);
    const second = log.page(first.next, {}, 0);
    expect([ids(second.flows), second.next, second.hasMore]).toEqual(['3,4', 4, false]);
    for (let id = 5; id <= 12; id += 1) log.note(flow(id), 0);
    const late = log.page(second.next, {}, 0);
    expect([ids(late.flows), late.forgotten, late.hasMore]).toEqual(['8,9', 3, true]);
    expect(ids(log.page(undefined, {}, 0).flows), 'the last ones').toBe('11,12');
    expect(ids(log.page(9999, {}, 0).flows), 'a number of an earlier process').toBe('8,9');
  });

  test('old ones are not shown; filters hold for pages too', () => {
    const log = new FlowLog(limits);
    log.note(flow(1), 0);
    log.note(flow(2, { cluster: 'east' }), 900);
    log.note(flow(3, { outcome: 'refused' }), 900);
    log.note(flow(4, { service: 'shop/api' }), 900);
    expect(ids(log.page(0, {}, 1500).flows)).toBe('2,3');
    expect(ids(log.page(0, { to: 'east' }, 1500).flows)).toBe('2');
    expect(ids(log.page(0, { outcome: 'refused' }, 1500).flows)).toBe('3');
    expect(ids(log.page(undefined, { service: 'shop/api' }, 1500).flows)).toBe('4');
  });
});

test('recorder: the address of a client is that of a Pod -> its name in every record; without one -> none', () => {
  const recorder = new FlowRecorder(owners, {
    podAt: (address) => (address === '10.1.0.2' ? 'shop/client' : undefined),
  });
  for (const line of [started, answered, ended]) recorder.line(line, atSeconds * 1000);
  const { flows } = recorder.page(undefined, {}, atSeconds * 1000);
  expect(flows.map(({ clientPod }) => clientPod)).toEqual(['shop/client', 'shop/client']);
  const nameless = new FlowRecorder(owners);
  for (const line of [started, answered]) nameless.line(line, atSeconds * 1000);
  expect(nameless.page(undefined, {}, atSeconds * 1000).flows[0]).not.toHaveProperty('clientPod');
});

test('recorder: calls that rules of access refused -> denied, with the cluster of the caller', () => {
  const recorder = new FlowRecorder(owners);
  const call = { client: '10.7.0.9', service: 'shop/db', endpoint: '10.1.0.7', port: 5432, protocol: 'tcp' };
  recorder.denied({ ...call, from: 'west', packets: 3 }, 'east', 5_000);
  expect(recorder.page(undefined, { outcome: 'denied' }, 5_000).flows).toMatchObject([
    { from: 'west', client: '10.7.0.9', service: 'shop/db', cluster: 'east', outcome: 'denied', sent: { packets: 3 } },
  ]);
});
