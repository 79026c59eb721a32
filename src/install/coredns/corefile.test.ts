// Which server blocks a Corefile has, and our own block in it between its marks.

import { describe, expect, test } from 'vitest';
import { mainPort, markedBlock, serverBlocks, withMarked, withoutMarked } from './corefile.ts';

const kubeadm = `.:53 {
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa
    }
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30
    reload
}
`;
const block = 'clusterset.local:53 {\n    forward . 10.96.0.20\n}\n';

describe('corefile', () => {
  test.each([
    ['as kubeadm writes it', kubeadm, [['dns://.:53']]],
    [
      'two keys, a comment, a port',
      '# x {\na.example, B.example.:5353 { # y\n}\n',
      [['dns://a.example:53', 'dns://b.example:5353']],
    ],
    ['keys on two lines', 'a.example,\nb.example {\n}\n', [['dns://a.example:53', 'dns://b.example:53']]],
    ['a snippet and an import', '(more) {\n cache\n}\nimport /etc/other\n. {\n import more\n}\n', [['dns://.:53']]],
    ['another scheme', 'tls://.:853 {\n}\ngrpc://. {\n}\n', [['tls://.:853'], ['grpc://.:']]],
    ['without braces', '.:53\nforward . 9.9.9.9\n', []],
    ['nothing', '', []],
    ['a brace that is never closed', '.:53 {\n    errors {\n', []],
  ])('corefile: %s -> its keys', (_what, text, keys) => {
    expect(serverBlocks(text).map((one) => one.keys)).toEqual(keys);
  });

  test('corefile: a block -> its plugins, and where it forwards to', () => {
    expect(serverBlocks(kubeadm)[0]).toMatchObject({
      forwards: ['/etc/resolv.conf'],
      plugins: ['errors', 'kubernetes', 'forward', 'cache', 'reload'],
    });
    expect(mainPort('.:5353 {\n}\n')).toBe('5353');
    expect(mainPort(block)).toBe('53');
  });

  test.each([
    ['ends with a line', kubeadm],
    ['is empty', ''],
  ])('corefile: it %s, our block is written twice with other addresses, and taken out -> as it was', (_what, text) => {
    const first = withMarked(text, block);
    const second = withMarked(`${first}later:53 {\n}\n`, block.replace('20', '21'));
    expect(first.startsWith(text)).toBe(true);
    expect(markedBlock(first)).toBe(block);
    expect(markedBlock(second)).toBe(block.replace('20', '21'));
    expect(withoutMarked(first)).toBe(text);
    expect(withoutMarked(second)).toBe(`${text}later:53 {\n}\n`);
  });

  test.each([
    ['the end is gone', (text: string) => text.replace('# end portolan\n', '')],
    ['the begin is gone', (text: string) => text.replace(/# begin.*\n/, '')],
    ['there are two', (text: string) => text + text],
    ['they are the wrong way round', () => '# end portolan\n.:53 {\n}\n# begin portolan\n'],
  ])('corefile: marks of which %s -> an error, nothing is guessed', (_what, damage) => {
    const text = damage(withMarked(kubeadm, block));
    expect(() => withoutMarked(text)).toThrow('correct them by hand');
    expect(() => withMarked(text, block)).toThrow('correct them by hand');
  });
});
