// `version.bind` and `id.server` in class CHAOS: the two questions people ask to learn which server answers them.

import { classChaos, rcode, recordType } from '../../base/dns/codes.ts';
import { encodeName } from '../../base/dns/name.ts';
import { txtData } from '../../catalog/names/answers.ts';
import type { Answer } from '../message/answer.ts';
import type { Handler, Step } from '../message/handler.ts';
import { extendedError, headerBytes, type Query } from '../message/wire.ts';

export function chaosHandler(options: { readonly serverId: string }): Handler {
  const texts: readonly { readonly names: readonly Uint8Array[]; readonly rdata: Uint8Array }[] = [
    { names: [encodeName('version.bind'), encodeName('version.server')], rdata: txtData('portolan') },
    { names: [encodeName('id.server'), encodeName('hostname.bind')], rdata: txtData(options.serverId) },
  ];
  return {
    name: 'chaos',
    handle(query: Query, answer: Answer): Step {
      if (query.class !== classChaos) return 'next';
      const asked = query.name.subarray(0, query.nameLength);
      const text = texts.find(({ names }) => names.some((name) => Buffer.compare(name, asked) === 0));
      if (!text || query.type !== recordType.TXT) {
        answer.fail(rcode.REFUSED, extendedError.notSupported, 'class CHAOS knows only version.bind and id.server');
        return 'done';
      }
      answer.isAuthoritative = true;
      const classAt = answer.mark() + 4;
      answer.recordAt('answer', recordType.TXT, 0, text.rdata, 0, text.rdata.length, 0xc000 | headerBytes);
      answer.bytes[classAt + 1] = classChaos;
      return 'done';
    },
  };
}
