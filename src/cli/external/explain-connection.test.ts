import { expect, test } from 'vitest';
import { parseConnection } from './explain-connection.ts';

function parsed(words: Parameters<typeof parseConnection>[0]): string {
  const { connection, request } = parseConnection(words);
  const { port, transport } = connection;
  const how = transport.kind === 'tls' ? `tls ${transport.sni ?? '-'}` : `plain ${transport.application ?? '-'}`;
  return `${port} ${how} ${request?.host ?? '-'}`;
}

test.each([
  [{ to: '10.1.1.7:443', sni: 'api.example.com' }, '443 tls api.example.com -'],
  [{ to: '10.1.1.7:443', protocol: 'tls' }, '443 tls - -'],
  [{ to: '10.1.1.7:80', host: 'a.example' }, '80 plain http1 a.example'],
  [{ to: '10.1.1.7:80', host: 'a.example', protocol: 'grpc' }, '80 plain http2 a.example'],
  [{ to: '[fd00::1]:80', protocol: 'http2' }, '80 plain http2 -'],
  [{ to: '10.1.1.7:27017' }, '27017 plain - -'],
])('explain connection: %j -> %s', (words, wanted) => {
  expect(parsed(words)).toBe(wanted);
});

test.each([
  [{ to: 'nowhere' }, 'write IP:PORT'],
  [{ to: '10.0.0.1:0' }, 'write IP:PORT'],
  [{ to: '10.0.0.1:99999' }, 'write IP:PORT'],
  [{ to: '10.0.0.1:80', sni: 'a.b', host: 'a.b' }, 'give one'],
  [{ to: '10.0.0.1:80', protocol: 'smtp' }, '--protocol smtp'],
  [{ to: '10.0.0.1:80', sni: 'a.b', protocol: 'http' }, '--sni: http has none'],
  [{ to: '10.0.0.1:80', host: 'a.b', protocol: 'tcp' }, '--host: tcp has none'],
])('explain connection: %j -> refused: %s', (words, why) => {
  expect(() => parsed(words)).toThrow(why);
});
