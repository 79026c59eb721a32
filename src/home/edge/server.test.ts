// The server itself: its port, how it stops, a renewed certificate, audit and metrics.

import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { createMetrics } from '../../base/metrics.ts';
import type { AuditEvent } from '../security/audit.ts';
import { openBench, openTestPki, Spout, sendHttp2, stream, text, until } from './testing/bench.ts';
import { edgeSuite } from './testing/edge-suite.ts';

const { open, pki } = edgeSuite();

describe('edge: stopping', () => {
  test.each(['http1', 'http2'] as const)(
    'edge: close with requests in flight over %s -> answered, watches ended, nothing new taken',
    async (protocol) => {
      const spout = new Spout();
      let finish: () => void = () => {};
      const { http1, http2, server, seen } = await open(async (request) => {
        if (request.path === '/watch') return stream(spout);
        await new Promise<void>((resolve) => (finish = resolve));
        return text('done');
      });
      const session = http2();
      const watch = session.request({ ':path': '/watch' });
      const ended = once(watch.resume(), 'end');
      await once(watch, 'response');
      const goaway = once(session, 'goaway');
      const slow = protocol === 'http1' ? http1({ path: '/slow' }) : sendHttp2(session, { path: '/slow' });
      await until(() => seen.length === 2);
      const closing = server.close();
      await Promise.all([ended, goaway, spout.returned]);
      await expect(http1({ path: '/late' })).rejects.toThrow();
      finish();
      expect(await slow).toMatchObject({ status: 200, body: 'done' });
      await closing;
      expect(seen.length).toBe(2);
    },
  );

  test('edge: a long list is being sent while the server stops -> sent to its end', async () => {
    const list = new Spout();
    const { http2, server, seen } = await open(async () => stream(list, false));
    const answer = sendHttp2(http2());
    await until(() => seen.length === 1 && list.pulls > 0);
    list.push('{"items":[1');
    await until(() => list.pulls > 1);
    const closing = server.close();
    list.push(',2]}');
    list.end();
    expect(await answer).toMatchObject({ status: 200, body: '{"items":[1,2]}' });
    await closing;
  });

  test('edge: a watch that begins while the server stops -> ended at once', async () => {
    const spout = new Spout();
    let begin: () => void = () => {};
    const { http2, server, seen } = await open(async () => {
      await new Promise<void>((resolve) => (begin = resolve));
      return stream(spout);
    });
    const answer = sendHttp2(http2());
    await until(() => seen.length === 1);
    const closing = server.close();
    begin();
    expect(await answer).toMatchObject({ status: 200, body: '' });
    await Promise.all([closing, spout.returned]);
  });

  test('edge: a port that is taken -> says which, and what to do', async () => {
    const { server } = await open(() => text('hello'));
    const listen = { host: '127.0.0.1', port: server.address.port };
    await expect(openBench(pki(), () => text('never'), { listen })).rejects.toThrow(
      /cannot listen on 127\.0\.0\.1:\d+, choose another address with --listen/,
    );
  });

  test('edge: close while a request never ends -> gives up after its grace', async () => {
    const { http1, server, seen } = await open(() => new Promise(() => {}), { limits: { graceMsMax: 100 } });
    const stuck = http1();
    stuck.catch(() => {});
    await until(() => seen.length === 1);
    await server.close();
    await expect(stuck).rejects.toThrow();
  });
});

describe('edge: renewal', () => {
  test('edge: a new serving certificate -> new connections get it, an open stream goes on', async () => {
    const spout = new Spout();
    let credentials = pki().serverCredentials();
    let renew: () => void = () => {};
    const renewing = {
      clientCa: pki().clientCa,
      serverCredentials: () => credentials,
      onRenewed: (listener: (next: typeof credentials) => void) => {
        renew = () => listener(credentials);
        return () => {};
      },
    };
    const { http2, raw } = await open((request) => (request.path === '/watch' ? stream(spout) : text('hello')), {
      pki: renewing,
    });
    const before = (await raw()).getPeerX509Certificate()?.fingerprint256;
    const watch = http2().request({ ':path': '/watch' });
    await once(watch, 'response');
    const next = await openTestPki();
    credentials = next.pki.serverCredentials();
    next.remove();
    renew();
    const after = (await raw({ ca: next.pki.clientCa })).getPeerX509Certificate()?.fingerprint256;
    expect(after).not.toBe(before);
    spout.push('still here');
    expect(String((await once(watch, 'data'))[0])).toBe('still here');
  });
});

describe('edge: seen while it runs', () => {
  test('edge: audit switched on while it runs -> a line for each request from then on, two for a watch', async () => {
    const spout = new Spout();
    const events: AuditEvent[] = [];
    const { http1, http2, server } = await open((request) => {
      if (request.trail !== undefined) request.trail.user = { name: 'ann', groups: ['dev'] };
      return request.path.includes('watch') ? stream(spout) : text('{}', 201);
    });
    await http1({ path: '/before' });
    server.setAudit({ record: (event) => events.push(event) });
    await http1({ method: 'POST', path: '/api/v1/namespaces/shop/services', headers: { 'user-agent': 'kubectl' } });
    const watch = http2().request({ ':path': '/apis/apps/v1/deployments?watch=true' });
    await once(watch, 'response');
    spout.end();
    await until(() => events.length === 3);
    server.setAudit(undefined);
    await http1({ path: '/after' });
    expect(events).toMatchObject([
      {
        stage: 'ResponseComplete',
        verb: 'create',
        user: { username: 'ann', groups: ['dev'] },
        objectRef: { resource: 'services', namespace: 'shop', apiVersion: 'v1' },
        sourceIPs: ['127.0.0.1'],
        userAgent: 'kubectl',
        responseStatus: { code: 201 },
      },
      { stage: 'ResponseStarted', verb: 'watch', objectRef: { resource: 'deployments', apiGroup: 'apps' } },
      { stage: 'ResponseComplete', verb: 'watch' },
    ]);
    expect(events[1]?.auditID).toBe(events[2]?.auditID);
    expect(events[0]?.auditID).not.toBe(events[1]?.auditID);
  });

  test('edge: metrics -> requests by method and code, open connections', async () => {
    const metrics = createMetrics();
    const { http1, raw } = await open(() => text('hello', 404), { metrics });
    await http1();
    await http1({ method: 'DELETE' });
    await raw();
    const shown = await metrics.text();
    expect(shown).toContain('portolan_http_requests_total{method="GET",code="404"} 1');
    expect(shown).toContain('portolan_http_requests_total{method="DELETE",code="404"} 1');
    expect(shown).toMatch(/portolan_http_connections [1-3]\n/);
  });
});
