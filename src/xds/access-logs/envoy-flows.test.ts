import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { describe, expect, test } from 'vitest';
import { encodeMessage } from '../../base/protobuf/encode.ts';
import { envoySchema } from '../envoy-schema.ts';
import { readLogMessage } from './entries.ts';
import { EnvoyFlows } from './envoy-flows.ts';

const data = 'envoy.data.accesslog.v3';
const service = 'envoy.service.accesslog.v3.StreamAccessLogsMessage';
const socket = (address: string, port: number) => ({ socket_address: { address, port_value: port } });

const common = {
  downstream_remote_address: socket('10.1.0.2', 41_000),
  downstream_local_address: socket('243.0.0.1', 80),
  upstream_remote_address: socket('192.0.2.9', 15_443),
  upstream_cluster: 'gateway/west',
  start_time: { seconds: 1_795_019_455, nanos: 250_000_000 },
  duration: '0.120s',
};
const tcp = (fields: object = {}) => ({
  common_properties: { ...common, ...fields },
  connection_properties: { received_bytes: 120, sent_bytes: 4_000 },
});
const http = (response_code: number, fields: object = {}) => ({
  common_properties: { ...common, ...fields },
  response: { response_code },
});

function message(logName: string, kind: 'http' | 'tcp', entries: readonly object[]): Uint8Array {
  const writer = new BinaryWriter();
  const identifier = { node: { id: 'sidecar~east~node-1' }, log_name: logName };
  writer
    .tag(1, WireType.LengthDelimited)
    .bytes(encodeMessage(envoySchema, `${service}.Identifier`, identifier as never));
  const name = kind === 'http' ? 'HTTPAccessLogEntry' : 'TCPAccessLogEntry';
  const list = new BinaryWriter();
  for (const entry of entries)
    list.tag(1, WireType.LengthDelimited).bytes(encodeMessage(envoySchema, `${data}.${name}`, entry as never));
  writer.tag(kind === 'http' ? 2 : 3, WireType.LengthDelimited).bytes(list.finish());
  return writer.finish();
}

function opened(perSecond?: number) {
  const time = { nowMs: 1_795_019_460_000 };
  const clock = { wallMs: () => time.nowMs, monotonicMs: () => time.nowMs };
  const flows = new EnvoyFlows({ clock, ...(perSecond === undefined ? {} : { perSecond }) });
  flows.serviceAt = (address) => (address === '243.0.0.1' ? 'shop/web' : undefined);
  const take = (logName: string, kind: 'http' | 'tcp', ...entries: object[]) => {
    const read = readLogMessage(message(logName, kind, entries));
    flows.take(read.entries, { node: 'node-1', cluster: 'east', logName: read.identifier!.logName });
  };
  const page = (asked = {}) => flows.page({ node: 'xds-1', from: 'east' }, asked);
  return { take, page, time };
}

describe('flows of Envoys', () => {
  test('a connection through a gateway -> service by the address, the cluster that serves it, bytes and times', () => {
    const { take, page } = opened();
    take('near-side', 'tcp', tcp());
    expect(page().flows).toEqual([
      {
        ...{
          id: 1,
          seenBy: 'envoy',
          node: 'node-1',
          protocol: 'tcp',
          service: 'shop/web',
          cluster: 'west',
          way: 'gateway',
        },
        ...{ client: '10.1.0.2', clientPort: 41_000, address: '243.0.0.1', port: 80 },
        ...{ endpoint: '192.0.2.9', endpointPort: 15_443, outcome: 'answered' },
        ...{
          startedMs: 1_795_019_455_250,
          endedMs: 1_795_019_455_370,
          sent: { bytes: 120 },
          received: { bytes: 4_000 },
        },
      },
    ]);
  });

  test.each([
    ['upstream_connection_failure', 'no-answer'],
    ['no_healthy_upstream', 'no-answer'],
    ['upstream_remote_reset', 'refused'],
  ])('Envoy says %s -> %s', (flag, outcome) => {
    const { take, page } = opened();
    take('near-side', 'tcp', tcp({ response_flags: { [flag]: true } }));
    expect(page().flows[0]!.outcome).toBe(outcome);
  });

  test('at a gateway -> the service that was asked for by address or name, the caller, and what was not allowed is denied', () => {
    const { take, page } = opened();
    const asked = (text: string) => ({ custom_tags: { asked: text, from: 'west' } });
    take('gateway', 'http', http(200, asked('243.0.0.1:80')), http(403, asked('web.shop.svc.clusterset.local:80')));
    expect(page().flows.map(({ service: name, from, outcome, cluster }) => [name, from, outcome, cluster])).toEqual([
      ['shop/web', 'west', 'answered', 'east'],
      ['shop/web', 'west', 'denied', 'east'],
    ]);
    expect(page({ outcome: 'denied' }).flows).toHaveLength(1);
  });

  test('requests to an external service -> status and time to the first byte; a status of 500 is an answer', () => {
    const { take, page } = opened();
    const tags = { custom_tags: { service: 'shop/payments' }, time_to_first_upstream_rx_byte: '0.031500s' };
    take('external', 'http', http(200, tags), http(500, tags));
    expect(page().flows).toMatchObject([
      { service: 'shop/payments', status: 200, answeredAfterMs: 31.5, outcome: 'answered', way: 'direct' },
      { service: 'shop/payments', status: 500, outcome: 'answered' },
    ]);
  });

  test('more than may be recorded -> the rest is counted, and never decoded; later ones are recorded again', () => {
    const { take, page, time } = opened(10);
    take('near-side', 'tcp', ...Array.from({ length: 50 }, () => tcp()));
    expect([page().flows.length, page().losses.unrecorded]).toEqual([20, 30]);
    time.nowMs += 1_000;
    take('near-side', 'tcp', ...Array.from({ length: 15 }, () => tcp()));
    expect([page().flows.length, page().losses.unrecorded]).toEqual([30, 35]);
  });

  test('paths and headers of requests -> in nothing that is kept', () => {
    const { take, page } = opened();
    // As Envoy sends it: field 3 of the entry, which has authority, path and headers.
    const request = new BinaryWriter().tag(5, WireType.LengthDelimited).string('/pay?token=secret').finish();
    const entry = encodeMessage(
      envoySchema,
      `${data}.HTTPAccessLogEntry`,
      http(200, { custom_tags: { service: 'shop/p' } }) as never,
    );
    const whole = new BinaryWriter().raw(entry).tag(3, WireType.LengthDelimited).bytes(request).finish();
    const list = new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(whole).finish();
    const bytes = new BinaryWriter().tag(2, WireType.LengthDelimited).bytes(list).finish();
    const [read] = readLogMessage(bytes).entries;
    expect(Buffer.from(bytes).toString('latin1')).toContain('token=secret');
    expect(JSON.stringify(read!.decode())).not.toContain('secret');
    take('external', 'http', http(200, { custom_tags: { service: 'shop/p' } }));
    expect(JSON.stringify(page())).not.toContain('secret');
  });

  test.each([
    ['no bytes', new Uint8Array()],
    ['an entry that ends early', Uint8Array.of(0x1a, 0x04, 0x0a, 0x7f, 1, 2)],
    ['fields of another kind', Uint8Array.of(0x08, 0x01, 0x1a, 0x00)],
  ])('%s -> an error or nothing, never a flow', (_, bytes) => {
    const read = () => readLogMessage(bytes).entries.map((entry) => entry.decode());
    try {
      expect(read()).toEqual([]);
    } catch (error) {
      expect(String(error)).toMatch(/MalformedError|Error/);
    }
  });
});
