// In which form an answer is wanted, from the Accept header: the object itself, a table for people, its metadata alone,
// or, for discovery, everything at once.

import { StatusError } from '../model/status.ts';

export type Form =
  | { readonly kind: 'json' }
  | { readonly kind: 'table'; readonly version: string }
  | { readonly kind: 'metadata'; readonly version: string }
  | { readonly kind: 'discovery'; readonly version: string };

interface Wanted {
  readonly mediaType: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly quality: number;
}

const json: Form = { kind: 'json' };

/** Which forms are on offer depends on what is asked: a table of discovery makes no sense. */
export function negotiate(accept: string | undefined, offered: ReadonlySet<Form['kind']>): Form {
  if (accept === undefined || accept === '' || accept === 'application/json' || accept === '*/*') return json;
  for (const wanted of parseAccept(accept)) {
    const form = formOf(wanted);
    if (form !== undefined && offered.has(form.kind)) return form;
  }
  throw new StatusError('NotAcceptable', 'only the following media types are accepted: application/json');
}

function parseAccept(accept: string): Wanted[] {
  const wanted = accept
    .split(',')
    .map(parseOne)
    .filter((each) => each.quality > 0);
  return wanted.toSorted((a, b) => b.quality - a.quality);
}

function parseOne(text: string): Wanted {
  const [mediaType = '', ...rest] = text.split(';').map((part) => part.trim());
  const parameters: Record<string, string> = {};
  for (const part of rest) {
    const equals = part.indexOf('=');
    if (equals > 0) parameters[part.slice(0, equals).toLowerCase()] = part.slice(equals + 1).replace(/^"|"$/g, '');
  }
  const quality = Number(parameters['q'] ?? 1);
  return { mediaType: mediaType.toLowerCase(), parameters, quality: Number.isNaN(quality) ? 0 : quality };
}

const jsonTypes = new Set(['application/json', 'application/*', '*/*']);

function formOf({ mediaType, parameters }: Wanted): Form | undefined {
  if (!jsonTypes.has(mediaType)) return undefined;
  const { as, g: group, v: version = '' } = parameters;
  if (as === undefined) return json;
  const isMeta = group === 'meta.k8s.io' && (version === 'v1' || version === 'v1beta1');
  if (isMeta && as === 'Table') return { kind: 'table', version };
  if (isMeta && (as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList')) {
    return { kind: 'metadata', version };
  }
  const isDiscovery = group === 'apidiscovery.k8s.io' && (version === 'v2' || version === 'v2beta1');
  return isDiscovery && as === 'APIGroupDiscoveryList' ? { kind: 'discovery', version } : undefined;
}
