// The stub-zone endpoint, as plain requests and over HTTPS with client certificates.

import { request as httpsRequest } from 'node:https';
import { describe, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import type { Disk } from '../../base/world.ts';
import type { StubZone } from '../config/config.ts';
import { listenFederations } from '../sockets/server-federations.ts';
import { makeAuthority } from '../testing/edge/certs.ts';
import { Federations, type FederationsOptions, fileStore } from './federations.ts';

class MemoryDisk implements Disk {
  readonly files = new Map<string, Uint8Array>();
  isFull = false;
  read = async (path: string) => this.files.get(path);
  write = async (path: string, content: Uint8Array | Iterable<Uint8Array>) => {
    if (this.isFull) throw new Error('disk is full');
    this.files.set(
      path,
      content instanceof Uint8Array ? content : Buffer.concat(Array.from(content, (piece) => Buffer.from(piece))),
    );
  };
  remove = async (path: string) => {
    this.files.delete(path);
  };
  list = async () => [];
  freeBytes = async () => 0;
}

function setUp(options: Partial<FederationsOptions> = {}) {
  const disk = new MemoryDisk();
  const told: StubZone[][] = [];
  const make = () =>
    new Federations({
      store: fileStore(disk, 'stub-zones.json'),
      path: 'stub-zones.json',
      log: silentLog,
      allowed: ['agent'],
      onChange: (zones) => told.push([...zones]),
      ...options,
    });
  const federations = make();
  const send = async (method: string, path: string, body?: string, identity = 'agent') => {
    const response = await federations.handle(
      { method, path, headers: {}, body: body === undefined ? undefined : Buffer.from(body) },
      identity,
    );
    return `${response.status} ${Buffer.from(response.body as Uint8Array)
      .toString()
      .trim()}`;
  };
  return { disk, told, send, make, federations };
}

describe('stub-zone endpoint', () => {
  const body = '{"nameservers": ["108.45.90.180", "108.180.64.128:5353"]}';

  test('POST, GET, DELETE -> the stub zone is there, shown, and gone [001-11]', async () => {
    const { send, told } = setUp();
    expect(await send('POST', '/federations/myfederation', body)).toMatch(/^200 /);
    expect(told.at(-1)).toEqual([
      { zone: 'myfederation.svc.federation', nameservers: ['108.45.90.180', '108.180.64.128:5353'], sendsSource: true },
    ]);
    expect(await send('GET', '/federations/myfederation')).toBe(
      '200 {"nameservers":["108.45.90.180","108.180.64.128:5353"]}',
    );
    expect(await send('GET', '/federations')).toContain('myfederation');
    expect(await send('DELETE', '/federations/myfederation')).toBe('200 {}');
    expect(told.at(-1)).toEqual([]);
    expect(await send('GET', '/federations/myfederation')).toMatch(/^404 /);
  });

  test.each(['constructor', 'tostring', 'valueof'])('GET, DELETE of %s, which nobody posted -> 404', async (name) => {
    const { send } = setUp();
    expect(await send('GET', `/federations/${name}`)).toMatch(/^404 /);
    expect(await send('DELETE', `/federations/${name}`)).toMatch(/^404 /);
  });

  test('a key of this resolver is named -> the zone is signed with it, also after a restart; an unknown one -> 400', async () => {
    const east = { name: 'east', algorithm: 'hmac-sha256' as const, secret: new Uint8Array(32) };
    const keyOfZone = new Map([['by-flag.svc.federation', 'east']]);
    const { send, told, make } = setUp({ keys: [east], keyOfZone });
    const withKey = '{"nameservers": ["10.0.0.1"], "key": "East."}';
    expect(await send('POST', '/federations/f', withKey)).toBe('200 {"nameservers":["10.0.0.1"],"key":"east"}');
    expect(told.at(-1)).toMatchObject([{ zone: 'f.svc.federation', key: east }]);
    expect(await send('POST', '/federations/g', '{"nameservers": ["10.0.0.1"], "key": "west"}')).toMatch(
      /^400 .*key west is not known here/,
    );
    await send('POST', '/federations/by-flag', body);
    const again = make();
    await again.load();
    expect(again.zones().map(({ zone, key }) => `${zone} ${key?.name}`)).toEqual([
      'f.svc.federation east',
      'by-flag.svc.federation east',
    ]);
  });

  test("the seed's own body, a key without quotes -> understood [001-19]", async () => {
    const { send } = setUp();
    expect(await send('POST', '/federations/f', '{\n  nameservers: ["108.45.90.180", "108.180.64.128"]\n}')).toMatch(
      /^200 /,
    );
  });

  test('a restart -> what was posted is still there [001-47]', async () => {
    const { send, make, told } = setUp();
    await send('POST', '/federations/myfederation', body);
    const again = make();
    await again.load();
    expect(again.zones()).toEqual(told.at(-1));
    expect(again.zones()).toHaveLength(1);
  });

  test('zones given at start -> replaced by a post of the same federation until it is deleted [001-52]', async () => {
    const fixed = [{ zone: 'f.svc.federation', nameservers: ['10.0.0.1'], sendsSource: true }];
    const { send, federations } = setUp({ fixed });
    expect(federations.zones()).toEqual(fixed);
    await send('POST', '/federations/f', body);
    expect(federations.zones()).toMatchObject([{ nameservers: ['108.45.90.180', '108.180.64.128:5353'] }]);
    await send('DELETE', '/federations/f');
    expect(federations.zones()).toEqual(fixed);
  });

  test('a post with a suffix -> the zone lies there, also after a restart; posted with another -> it moves', async () => {
    const { send, make, federations } = setUp();
    const zones = () => federations.zones().map(({ zone }) => zone);
    const post = (suffix: string) =>
      send('POST', '/federations/f', JSON.stringify({ nameservers: ['10.0.0.1'], suffix }));
    expect(await post('Fed.Example.org.')).toBe('200 {"nameservers":["10.0.0.1"],"suffix":"fed.example.org"}');
    expect(zones()).toEqual(['f.svc.fed.example.org']);
    const again = make();
    await again.load();
    expect(again.zones()).toEqual(federations.zones());
    await post('other.example');
    expect(zones()).toEqual(['f.svc.other.example']);
  });

  test("a suffix that leads into the cluster's own zones or those of others -> refused, nothing changes", async () => {
    const fixed = [{ zone: 'corp.example', nameservers: ['10.0.0.1'], sendsSource: false }];
    const { send, told } = setUp({ reserved: () => ['cluster.local', 'clusterset.local'], fixed });
    const post = (suffix: unknown) =>
      send('POST', '/federations/shop', JSON.stringify({ nameservers: ['10.0.0.1'], suffix }));
    expect(await post('cluster.local')).toMatch(/^403 .*shop\.svc\.cluster\.local lies in cluster\.local/);
    expect(await post('corp.example')).toMatch(/^403 /);
    expect(await post('not a name')).toMatch(/^400 /);
    expect(await post(7)).toMatch(/^400 /);
    expect(await post('a'.repeat(64))).toMatch(/^400 /);
    expect(told).toEqual([]);
  });

  test("the clusterset's zone is renamed -> closed to posts under its new name at once", async () => {
    let zone = 'clusterset.local';
    const { send } = setUp({ reserved: () => [zone] });
    const post = () =>
      send('POST', '/federations/shop', JSON.stringify({ nameservers: ['10.0.0.1'], suffix: 'set.example' }));
    expect(await post()).toMatch(/^200/);
    zone = 'set.example';
    expect(await post()).toMatch(/^403 .*shop\.svc\.set\.example lies in set\.example/);
  });

  test('the disk is full -> no yes, and nothing changes', async () => {
    const { send, disk, told } = setUp();
    disk.isFull = true;
    await expect(send('POST', '/federations/f', body)).rejects.toThrow(/disk is full/);
    expect(told).toEqual([]);
  });

  test('a file that cannot be read -> start fails and says which', async () => {
    const { disk, make } = setUp();
    disk.files.set('stub-zones.json', Buffer.from('nonsense'));
    await expect(make().load()).rejects.toThrow(/stub-zones\.json cannot be read/);
  });

  test.each([
    ['no certificate', 'POST', '/federations/f', body, '', 401],
    ['an unlisted certificate [001-46]', 'POST', '/federations/f', body, 'somebody', 403],
    ['an unlisted certificate reading', 'GET', '/federations', undefined, 'somebody', 403],
    ['no JSON', 'POST', '/federations/f', 'hello', 'agent', 400],
    ['no nameservers', 'POST', '/federations/f', '{"nameservers": []}', 'agent', 400],
    ['a nameserver that is a name', 'POST', '/federations/f', '{"nameservers": ["ns.example.com"]}', 'agent', 400],
    ['a port out of range', 'POST', '/federations/f', '{"nameservers": ["10.0.0.1:70000"]}', 'agent', 400],
    ['a body too large', 'POST', '/federations/f', ' '.repeat(20_000), 'agent', 413],
    ['a name with a dot', 'POST', '/federations/a.b', body, 'agent', 404],
    ['another path [001-11, 001-48]', 'GET', '/metrics', undefined, 'agent', 404],
    ['another method [001-48]', 'PATCH', '/federations/f', body, 'agent', 405],
  ])('%s -> %s %s is refused', async (_what, method, path, text, identity, status) => {
    const { send, told } = setUp();
    expect(await send(method, path, text, identity)).toMatch(new RegExp(`^${status} `));
    expect(told).toEqual([]);
  });
});

test("stub-zone endpoint over HTTPS: a listed certificate posts; another authority's or none does not [001-15]", async () => {
  const authority = makeAuthority('set');
  const stranger = makeAuthority('stranger');
  const { federations } = setUp();
  const server = authority.issue('resolver', { kind: 'server', hosts: ['127.0.0.1'] });
  const listening = await listenFederations({
    federations,
    host: '127.0.0.1',
    port: 0,
    ...server,
    clientAuthority: authority.certificate,
  });
  const post = (client: { certificate: string; key: string } | undefined) =>
    new Promise<number>((resolve, reject) => {
      const request = httpsRequest(
        {
          host: '127.0.0.1',
          port: listening.port,
          method: 'POST',
          path: '/federations/f',
          ca: authority.certificate,
          cert: client?.certificate,
          key: client?.key,
          agent: false,
        },
        (response) => {
          response.resume();
          resolve(response.statusCode!);
        },
      );
      request.on('error', reject);
      request.end('{"nameservers": ["10.0.0.1"]}');
    });
  try {
    expect(await post(undefined)).toBe(401);
    expect(await post(stranger.issue('agent', { kind: 'client' }))).toBe(401);
    expect(await post(authority.issue('other', { kind: 'client' }))).toBe(403);
    expect(federations.zones()).toEqual([]);
    expect(await post(authority.issue('agent', { kind: 'client' }))).toBe(200);
    expect(federations.zones()).toHaveLength(1);
  } finally {
    await listening.close();
  }
});
