// The heaviest requests of each verb: bodies at the limit in the forms that cost most, patches of every kind, selectors,
// and lists and watches of everything there is.

import { dump, type Heavy, type Place, repeat, sent } from './requests.ts';

const bodyBytes = 3 * 1024 * 1024 - 4096;
/** Members and items that a body may have, with room for those around them. */
const valuesMax = 39_900;
const maps = '/api/v1/namespaces/heavy/configmaps';
const many = '/api/v1/namespaces/many/configmaps';
const services = '/api/v1/namespaces/heavy/services';
const pods = '/api/v1/namespaces/heavy/pods';
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const roles = '/apis/rbac.authorization.k8s.io/v1';
const widgets = '/apis/heavy.example/v1/namespaces/heavy/widgets';

const json = { 'content-type': 'application/json' };
const yaml = { 'content-type': 'application/yaml' };
const mergePatch = { 'content-type': 'application/merge-patch+json' };
const jsonPatch = { 'content-type': 'application/json-patch+json' };
const applyPatch = { 'content-type': 'application/apply-patch+yaml' };
const strategic = { 'content-type': 'application/strategic-merge-patch+json' };
const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
const metadataOnly = { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' };

/** As many of an item as fit into a body, between an opening and a closing. */
function filled(opening: string, item: (at: number) => string, closing: string, bytes = bodyBytes): string {
  const each = 1 + (item(1).match(/[,{[]/g)?.length ?? 0);
  const items: string[] = [];
  let length = opening.length + closing.length;
  for (let at = 0; ; at++) {
    const next = item(at);
    length += next.length + 1;
    if (length > bytes || at * each >= valuesMax) return `${opening}${items.join(',')}${closing}`;
    items.push(next);
  }
}

function mapBody(name: string, rest: string): string {
  return `{"metadata":{"name":"${name}"},"data":{${rest}`;
}

const bodies: Record<string, (name: string) => string> = {
  'one string of 3 MB': (name) => `${mapBody(name, '"a":"')}${'x'.repeat(bodyBytes - 200)}"}}`,
  'as many keys as fit': (name) => filled(mapBody(name, ''), (at) => `"${at.toString(36)}":""`, '}}'),
  'as many unknown fields as fit': (name) =>
    filled(`{"metadata":{"name":"${name}"},`, (at) => `"x${at.toString(36)}":0`, '}'),
  'nested lists of nothing': (name) => filled(`{"metadata":{"name":"${name}"},"x":[`, () => '[]', ']}'),
  'one key again and again': (name) => filled(mapBody(name, ''), () => '"a":""', '}}'),
  labels: (name) => filled(`{"metadata":{"name":"${name}","labels":{`, (at) => `"${at.toString(36)}":""`, '}}}'),
  finalizers: (name) => filled(`{"metadata":{"name":"${name}","finalizers":[`, (at) => `"a.b/${at}"`, ']}}'),
  owners: (name) =>
    filled(
      `{"metadata":{"name":"${name}","ownerReferences":[`,
      (at) => `{"apiVersion":"v1","kind":"X","name":"n","uid":"${at}"}`,
      ']}}',
    ),
};

function creates(): Heavy[] {
  return Object.entries(bodies).map(([what, body]) => ({
    verb: 'create',
    what: `ConfigMap, ${what}`,
    run: async (place, round) => sent(place, 'POST', maps, body(`c${round}`), json),
    after: (place, round) => sent(place, 'DELETE', `${maps}/c${round}`),
  }));
}

function structured(): Heavy[] {
  const post = (what: string, path: string, body: (round: number) => string, headers = json): Heavy => ({
    verb: 'create',
    what,
    run: (place, round) => sent(place, 'POST', path, body(round), headers),
  });
  const container = (at: number) => `{"name":"c${at}","image":"i","env":[{"name":"A","value":"b"}]}`;
  return [
    post('Service, 3 MB of ports', services, (round) =>
      filled(`{"metadata":{"name":"p${round}"},"spec":{"ports":[`, (at) => `{"name":"p${at}","port":${at}}`, ']}}'),
    ),
    post('Pod, 3 MB of containers', pods, (round) =>
      filled(`{"metadata":{"name":"p${round}"},"spec":{"containers":[`, container, ']}}'),
    ),
    post('Role, 3 MB of rules', `${roles}/namespaces/heavy/roles`, (round) =>
      filled(
        `{"metadata":{"name":"r${round}"},"rules":[`,
        (at) => `{"verbs":["get"],"apiGroups":["g${at}"],"resources":["r"]}`,
        ']}',
      ),
    ),
    post('RoleBinding, 3 MB of subjects', `${roles}/namespaces/heavy/rolebindings`, (round) =>
      filled(
        `{"metadata":{"name":"b${round}"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},"subjects":[`,
        (at) => `{"kind":"User","name":"u${at}"}`,
        ']}',
      ),
    ),
    post('CustomResourceDefinition, 3 MB of schema', definitions, (round) =>
      definitionOf(
        { plural: `bigs${round}`, kind: `Big${round}` },
        (at) => `"p${at}":{"type":"string","${at < 220 ? 'pattern' : 'description'}":"^[a-z]{1,63}[${round}${at}]$"}`,
      ),
    ),
    post('CustomResourceDefinition, as many fields as fit', definitions, (round) =>
      definitionOf({ plural: `fields${round}`, kind: `Field${round}` }, (at) => `"p${at}":{"type":"string"}`),
    ),
    post('CustomResourceDefinition, as many defaults as fit under a pattern', definitions, (round) =>
      definitionOf(
        { plural: `defaults${round}`, kind: `Default${round}` },
        (at) => `"p${at}":{"type":"string","pattern":"^(a?){100}$","default":"aaaaaaaa"}`,
      ),
    ),
    post('CustomResourceDefinition, fields 120 levels deep', definitions, (round) => {
      const levels = 120;
      const opening = '"n":{"type":"object","default":{},"properties":{'.repeat(levels);
      return definitionOf(
        { plural: `deeps${round}`, kind: `Deep${round}` },
        (at) => `"p${at}":{"type":"string","title":","}`,
        opening,
        '}}'.repeat(levels),
      );
    }),
    post('CustomResourceDefinition, refused for each of its fields', definitions, (round) =>
      definitionOf({ plural: `wrongs${round}`, kind: `Wrong${round}` }, (at) => `"p${at}":{}`),
    ),
    post('custom object, 3 MB of text under a pattern', widgets, (round) =>
      JSON.stringify({ metadata: { name: `t${round}` }, spec: { text: 'a'.repeat(bodyBytes - 200) } }),
    ),
    post('custom object, 3 MB of items under patterns and choices', widgets, (round) =>
      filled(`{"metadata":{"name":"i${round}"},"spec":{"items":[`, (at) => `"i${at}"`, ']}}'),
    ),
    post('YAML of as many tokens as are taken', maps, (round) => yamlMap(`y${round}`, 7_000), yaml),
    post('YAML, refused for its length', maps, (round) => yamlMap(`z${round}`, 300_000), yaml),
    post(
      'YAML, a block of 512 KB',
      maps,
      (round) => `metadata: {name: l${round}}\ndata:\n  a: |\n${repeat('    xxxxxxxxxxx\n', 32_000)}`,
      yaml,
    ),
    post('TokenReview, 16 KB', '/apis/authentication.k8s.io/v1/tokenreviews', () =>
      JSON.stringify({ spec: { token: 'a.b.'.repeat(4000) } }),
    ),
    post('SubjectAccessReview, 3 MB of groups', '/apis/authorization.k8s.io/v1/subjectaccessreviews', () =>
      filled(
        '{"spec":{"user":"u","resourceAttributes":{"verb":"get","resource":"pods"},"groups":[',
        (at) => `"g${at}"`,
        ']}}',
      ),
    ),
  ];
}

/** A definition with as many fields as fit, inside an opening and a closing. */
function definitionOf(
  { plural, kind }: { readonly plural: string; readonly kind: string },
  field: (at: number) => string,
  opening = '',
  closing = '',
): string {
  const names = `"names":{"plural":"${plural}","kind":"${kind}"}`;
  const version =
    '"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{';
  return filled(
    `{"metadata":{"name":"${plural}.heavy.example"},"spec":{"group":"heavy.example","scope":"Namespaced",${names},"versions":[{${version}${opening}`,
    field,
    `${closing}}}}}]}}`,
  );
}

function hugeDefinition(prefix: string): string {
  return definitionOf({ plural: 'huges', kind: 'Huge' }, (at) => `"${prefix}${at}":{"type":"string"}`);
}

function yamlMap(name: string, lines: number): string {
  return `metadata: {name: ${name}}\ndata:\n${Array.from({ length: lines }, (_, at) => `  k${at}: v\n`).join('')}`;
}

/** Each key is a member of the object and of its manager's fields. */
const ownedMax = 18_000;

function applies(): Heavy[] {
  const body = (value: string) => {
    const data = Object.fromEntries(Array.from({ length: ownedMax }, (_, at) => [`k${at}`, value]));
    return dump({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'owned' }, data });
  };
  const apply = (what: string, path: string, value: (round: number) => string): Heavy => ({
    verb: 'apply',
    what,
    run: (place, round) => sent(place, 'PATCH', `${maps}/owned?${path}`, body(value(round)), applyPatch),
  });
  return [
    apply('as many keys as can be owned, new values each time', 'fieldManager=a', (round) => `a${round}`),
    apply('as many conflicts as there are keys', 'fieldManager=b', (round) => `b${round}`),
    apply('as many keys taken from another manager', 'fieldManager=b&force=true', (round) => `b${round}`),
    {
      verb: 'apply',
      what: 'nothing, by one who owned as many keys',
      run: (place) =>
        sent(
          place,
          'PATCH',
          `${maps}/owned?fieldManager=b&dryRun=All`,
          '{"apiVersion":"v1","kind":"ConfigMap"}',
          applyPatch,
        ),
    },
    {
      verb: 'update',
      what: 'as many keys as another manager owns',
      run: (place, round) => sent(place, 'PUT', `${maps}/owned`, body(`c${round}`), json),
    },
  ];
}

function patches(): Heavy[] {
  const patch = (what: string, path: string, body: string, headers: Record<string, string>): Heavy => ({
    verb: 'patch',
    what,
    run: (place) => sent(place, 'PATCH', `${path}?dryRun=All`, body, headers),
  });
  const operations = (operation: (at: number) => unknown, count = 10_000) =>
    JSON.stringify(Array.from({ length: count }, (_, at) => operation(at)));
  return [
    patch(
      'merge patch, as many keys as fit on as many',
      `${maps}/keys`,
      filled('{"data":{', (at) => `"${at.toString(36)}":"1"`, '}}'),
      mergePatch,
    ),
    patch(
      'JSON patch, 10,000 additions in front of a list',
      `${widgets}/list`,
      operations(() => ({ op: 'add', path: '/spec/items/0', value: 'x' })),
      jsonPatch,
    ),
    patch(
      'JSON patch, 10,000 copies',
      `${maps}/keys`,
      operations((at) => ({ op: 'copy', from: '/metadata', path: `/data/${at}` })),
      jsonPatch,
    ),
    patch(
      'JSON patch, 10,000 moves between maps',
      `${maps}/keys`,
      operations((at) => ({ op: 'move', from: `/data/${at.toString(36)}`, path: `/data/m${at}` })),
      jsonPatch,
    ),
    patch(
      'JSON patch, a test of everything',
      `${maps}/keys`,
      filled('[{"op":"test","path":"/data","value":{', (at) => `"${at.toString(36)}":""`, '}}]'),
      jsonPatch,
    ),
    patch(
      'strategic patch, 3 MB of keyed items',
      `${services}/one`,
      filled('{"spec":{"ports":[', (at) => `{"port":${at},"name":"n${at}"}`, ']}}'),
      strategic,
    ),
    patch(
      'strategic patch, 3 MB taken from finalizers',
      `${services}/one`,
      filled(
        '{"metadata":{"finalizers":["a.b/c"],"$deleteFromPrimitiveList/finalizers":[',
        (at) => `"a.b/${at}"`,
        ']}}',
      ),
      strategic,
    ),
    patch(
      'strategic patch, 3 MB of order',
      `${services}/one`,
      filled('{"spec":{"$setElementOrder/ports":[', (at) => `{"port":${at}}`, '],"ports":[{"port":80}]}}'),
      strategic,
    ),
    patch(
      'merge patch of one label, CustomResourceDefinition with as many fields as fit',
      `${definitions}/huges.heavy.example`,
      '{"metadata":{"labels":{"a":"b"}}}',
      mergePatch,
    ),
    {
      verb: 'update',
      what: 'CustomResourceDefinition, as many fields as fit',
      run: (place, round) =>
        sent(place, 'PUT', `${definitions}/huges.heavy.example`, hugeDefinition(`q${round}`), json),
    },
    {
      verb: 'get',
      what: 'OpenAPI of a definition with as many fields as fit',
      run: (place) => sent(place, 'GET', '/openapi/v3'),
      after: (place, round) =>
        sent(place, 'PUT', `${definitions}/huges.heavy.example`, hugeDefinition(`r${round}`), json),
    },
    {
      verb: 'update',
      what: 'ConfigMap, as many keys as fit',
      run: (place, round) =>
        sent(
          place,
          'PUT',
          `${maps}/keys`,
          filled(mapBody('keys', ''), (at) => `"${at.toString(36)}":"${round}"`, '}}'),
          json,
        ),
    },
    {
      verb: 'update',
      what: 'ConfigMap, one string of 3 MB',
      run: (place, round) =>
        sent(
          place,
          'PUT',
          `${maps}/text`,
          `${mapBody('text', '"a":"')}${String(round).repeat(bodyBytes - 200)}"}}`,
          json,
        ),
    },
    { verb: 'get', what: 'an object of 3 MB', run: (place) => sent(place, 'GET', `${maps}/keys`) },
    {
      verb: 'get',
      what: 'an object of 3 MB, as a table',
      run: (place) => sent(place, 'GET', `${maps}/keys`, undefined, table),
    },
    {
      verb: 'delete',
      what: 'options of 3 MB',
      run: (place) =>
        sent(
          place,
          'DELETE',
          `${maps}/absent`,
          filled('{"x":[', () => '0', ']}'),
          json,
        ),
    },
  ];
}

function lists(): Heavy[] {
  const list = (what: string, path: string, headers?: Record<string, string>): Heavy => ({
    verb: 'list',
    what,
    run: (place) => sent(place, 'GET', path, undefined, headers),
  });
  const terms = Array.from({ length: 256 }, (_, at) => `k${at}!=v`).join(',');
  const values = Array.from({ length: 6_000 }, (_, at) => `v${at}`).join(',');
  return [
    list('everything', many),
    list('everything, as a table', many, table),
    list('everything, metadata alone', many, metadataOnly),
    list('a label that everything has', `${many}?labelSelector=team%3Dbench`),
    list('a label that nothing has', `${many}?labelSelector=${encodeURIComponent('team notin (bench)')}`),
    list(
      'one of a page that nothing matches',
      `${many}?limit=1&labelSelector=${encodeURIComponent('team notin (bench)')}`,
    ),
    list('a selector of 256 terms', `${many}?labelSelector=${encodeURIComponent(terms)}`),
    list('a selector of 6,000 values', `${many}?labelSelector=${encodeURIComponent(`team notin (${values})`)}`),
    list('a field that nothing has', `${many}?fieldSelector=metadata.name%3Dabsent`),
    list('100 objects of 1 MB', '/api/v1/namespaces/large/configmaps'),
    list('100 objects of 1 MB, as a table', '/api/v1/namespaces/large/configmaps', table),
    list('100 objects of 1 MB, by a label that they have', '/api/v1/namespaces/large/configmaps?labelSelector=team'),
  ];
}

function watches(): Heavy[] {
  const watch = (what: string, query: string, headers?: Record<string, string>): Heavy => ({
    verb: 'watch',
    what,
    run: (place) => sent(place, 'GET', `${many}?watch=1&timeoutSeconds=2&${query}`, undefined, headers),
  });
  const other = `labelSelector=${encodeURIComponent('team notin (bench)')}`;
  return [
    watch('start with everything', 'resourceVersion=0'),
    watch('start with everything, as tables', 'resourceVersion=0', table),
    watch('start with everything that a label selects', 'resourceVersion=0&labelSelector=team%3Dbench'),
    watch('start with what nothing matches', `resourceVersion=0&${other}`),
    { ...watch('go on from the oldest revision kept', ''), run: (place) => fromFloor(place, '') },
    { ...watch('go on from there by a label', ''), run: (place) => fromFloor(place, `&${other}`) },
  ];
}

async function fromFloor(place: Place, query: string): Promise<void> {
  await sent(place, 'GET', `${many}?watch=1&timeoutSeconds=2&resourceVersion=${place.floor}${query}`);
}

function collections(): Heavy[] {
  return [
    {
      verb: 'deletecollection',
      what: 'what nothing matches',
      run: (place) => sent(place, 'DELETE', `${many}?labelSelector=${encodeURIComponent('team notin (bench)')}`),
    },
    {
      verb: 'deletecollection',
      what: 'everything, as a dry run',
      run: (place) => sent(place, 'DELETE', `${many}?dryRun=All`),
    },
    {
      verb: 'list',
      what: 'at a revision before 50,000 changes',
      run: async (place) =>
        sent(place, 'GET', `${many}?limit=500&resourceVersion=${place.floor}&resourceVersionMatch=Exact`),
    },
  ];
}

export const heavyRequests: readonly Heavy[] = [
  ...creates(),
  ...structured(),
  ...patches(),
  ...applies(),
  ...lists(),
  ...watches(),
  ...collections(),
  { verb: 'snapshot', what: 'of everything', run: (place) => sent(place, 'POST', '/snapshots') },
];

/** Creates the objects that the requests above use. */
export async function prepare(place: Place): Promise<void> {
  for (const name of ['heavy', 'large'])
    await sent(place, 'POST', '/api/v1/namespaces', JSON.stringify({ metadata: { name } }), json);
  await sent(place, 'POST', definitions, dump(widgetDefinition()), json);
  await sent(place, 'POST', definitions, hugeDefinition('p'), json);
  await sent(
    place,
    'POST',
    maps,
    filled(mapBody('keys', ''), (at) => `"${at.toString(36)}":""`, '}}'),
    json,
  );
  await sent(place, 'POST', maps, mapBody('text', '"a":"x"}}'), json);
  await sent(place, 'POST', services, dump({ metadata: { name: 'one' }, spec: { ports: [{ port: 80 }] } }), json);
  for (let at = 0; at < 100; at++) {
    const metadata = { name: `large-${at}`, labels: { team: 'bench' } };
    await sent(
      place,
      'POST',
      '/api/v1/namespaces/large/configmaps',
      dump({ metadata, data: { a: 'x'.repeat(1_000_000) } }),
      json,
    );
  }
  await sent(
    place,
    'POST',
    widgets,
    filled('{"metadata":{"name":"list"},"spec":{"items":[', (at) => `"i${at}"`, ']}}', 200_000),
    json,
  );
}

function widgetDefinition(): object {
  const choices = Array.from({ length: 50 }, (_, at) => ({ pattern: `^x{1,${at + 1}}y$` }));
  const spec = {
    type: 'object',
    properties: {
      text: { type: 'string', pattern: '^(a|aa|aaa)*(b?a){0,100}$' },
      items: { type: 'array', items: { type: 'string', anyOf: [...choices, { pattern: '^i' }] } },
    },
  };
  return {
    metadata: { name: 'widgets.heavy.example' },
    spec: {
      group: 'heavy.example',
      scope: 'Namespaced',
      names: { plural: 'widgets', kind: 'Widget' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec } } },
        },
      ],
    },
  };
}
