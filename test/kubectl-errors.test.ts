// Errors that a real kubectl shows: in the form of Kubernetes, with the place of the fault.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from './support/counterparts.ts';
import type { Kubectl } from './support/kubectl.ts';
import { KubectlHome } from './support/kubectl-home.ts';

describeWith(['kubectl'], 'kubectl: bad input', () => {
  let home: KubectlHome;
  let kubectl: Kubectl;
  beforeAll(async () => {
    home = new KubectlHome();
    kubectl = await home.start();
  });
  afterAll(() => home.stop());

  const create = (object: object, flags = '') => kubectl.refused(`create ${flags} -f -`, JSON.stringify(object));
  const service = (metadata: object, spec: object) => ({ apiVersion: 'v1', kind: 'Service', metadata, spec });

  test('an unknown field -> refused with its path, or only warned of when asked to', async () => {
    const object = service({ name: 'typo' }, { ports: [{ port: 80, tragetPort: 8080 }], typ: 'ClusterIP' });
    const error = await create(object);
    expect(error).toContain('unknown field "spec.ports[0].tragetPort"');
    expect(error).toContain('unknown field "spec.typ"');
    const { code, err } = await kubectl.run('create --validate=warn -f -', JSON.stringify(object));
    expect(code).toBe(0);
    expect(err).toContain('Warning: unknown field "spec.typ"');
    await kubectl.ok('delete service typo');
  });

  test('a field given twice -> refused with its path', async () => {
    // Sent as it is: kubectl itself would keep only the last of them.
    const text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twice"},"data":{"a":"1"},"data":{"a":"2"}}';
    const path = '/api/v1/namespaces/default/configmaps?fieldValidation=Strict';
    expect(await kubectl.refused(`create --raw ${path} -f -`, text)).toContain('duplicate field "data"');
  });

  test('several faults -> all of them at once, each with its path and value', async () => {
    const ports = [{ port: 800_000 }, { port: 1, protocol: 'XTP', name: 'UPPER' }];
    const error = await create(service({ name: 'Bad_Name', labels: { 'a b': 'c' } }, { ports }));
    expect(error).toContain('The Service "Bad_Name" is invalid');
    expect(error).toMatch(/\* metadata.name: Invalid value: "Bad_Name": must be \S/);
    expect(error).toMatch(/\* metadata.labels: Invalid value: "a b": name part must be \S/);
    expect(error).toMatch(/\* spec.ports\[0\].port: Invalid value: 800000: must be between 1 and 65535, inclusive/);
    expect(error).toMatch(/\* spec.ports\[0\].name: Required value/);
    expect(error).toMatch(/\* spec.ports\[1\].protocol: Unsupported value: "XTP"/);
  });

  test('a wrong type -> refused with the field', async () => {
    expect(await create(service({ name: 'wrong' }, { ports: 'eighty' }), '--validate=false')).toContain('spec.ports');
    const error = await kubectl.refused(`patch namespace default --type=merge -p '{"metadata":{"labels":5}}'`);
    expect(error).toContain('metadata.labels');
  });

  test('a wrong version and an unknown kind -> said to be unknown, nothing stored', async () => {
    const metadata = { name: 'unknown' };
    for (const [apiVersion, kind] of [
      ['v9', 'Service'],
      ['v1', 'Servicee'],
      ['example.com/v1', 'Service'],
    ]) {
      const error = await create({ apiVersion, kind, metadata });
      expect(error).toContain(`no matches for kind "${kind}" in version "${apiVersion}"`);
    }
    expect(await kubectl.refused('get servicees')).toContain(`doesn't have a resource type "servicees"`);
    const raw = await kubectl.refused(
      'create --raw /api/v1/namespaces/default/services -f -',
      JSON.stringify({ apiVersion: 'v2', kind: 'Service', metadata }),
    );
    expect(raw).toMatch(/BadRequest|does not match/);
  });

  test('a body that is not JSON -> a malformed request, and the next one is served', async () => {
    const file = join(home.directory, 'broken.json');
    writeFileSync(file, '{"apiVersion":"v1","kind":');
    const raw = await kubectl.refused(`create --raw /api/v1/namespaces/default/configmaps -f ${file}`);
    expect(raw).toContain('BadRequest');
    expect(await kubectl.refused(`patch namespace default --type=merge -p '{'`)).toMatch(
      /not valid JSON|unable to parse/,
    );
    expect(await kubectl.ok('get --raw /livez')).toBe('ok');
  });

  test('a body too large -> refused with the limit, and the next one is served', async () => {
    const file = join(home.directory, 'large');
    writeFileSync(file, 'x'.repeat(4 * 1024 * 1024));
    const error = await kubectl.refused(`create configmap large --from-file=${file}`);
    expect(error).toMatch(/Request entity too large: limit is 3145728/);
    writeFileSync(file, 'x'.repeat(1_100_000));
    expect(await kubectl.refused(`create configmap large --from-file=${file}`)).toMatch(/Too long: .*1048576/);
    expect(await kubectl.ok('get --raw /livez')).toBe('ok');
  });

  test('what is not there, what is there already, and no such namespace -> named', async () => {
    expect(await kubectl.refused('get service none')).toBe('Error from server (NotFound): services "none" not found');
    await kubectl.ok('create configmap once');
    expect(await kubectl.refused('create configmap once')).toContain('configmaps "once" already exists');
    expect(await kubectl.refused('create configmap lost -n nowhere')).toContain('namespaces "nowhere" not found');
    expect(await kubectl.refused('delete namespace default')).toContain('namespaces "default" is forbidden');
  });

  test('an old resourceVersion -> a conflict, and the object is left as it is', async () => {
    await kubectl.ok('create configmap raced --from-literal=a=1');
    const read = await kubectl.ok('get configmap raced -o json');
    await kubectl.ok(`patch configmap raced --type=merge -p '{"data":{"a":"2"}}'`);
    const error = await kubectl.refused('replace -f -', read.replace('"a": "1"', '"a": "3"'));
    expect(error).toContain('(Conflict)');
    expect(error).toContain('the object has been modified; please apply your changes to the latest version');
    expect(await kubectl.ok('get configmap raced -o jsonpath={.data.a}')).toBe('2');
  });

  test('a json patch that does not fit -> says which operation, and why', async () => {
    await kubectl.ok('create configmap unfit');
    const patch = '[{"op":"test","path":"/data/a","value":"x"}]';
    const error = await kubectl.refused(`patch configmap unfit --type=json -p '${patch}'`);
    expect(error).toContain('operation 0, test "/data/a"');
    const strategic = await kubectl.refused(`patch clusterset.portolan.dev none -p '{}'`);
    expect(strategic).toMatch(/not found|media type|unknown format/);
  });

  test('a change of what cannot change -> refused with the field', async () => {
    await kubectl.ok('create service clusterip fixed --tcp=80');
    const error = await kubectl.refused(
      `patch service fixed --type=merge -p '{"spec":{"clusterIP":"10.96.0.77","clusterIPs":["10.96.0.77"]}}'`,
    );
    expect(error).toMatch(/spec.clusterIPs?(\[0\])?: Invalid value: .*(may not change once set|field is immutable)/);
  });

  test('a selector that cannot be read -> refused, not answered with everything', async () => {
    expect(await kubectl.refused('get --raw /api/v1/pods?labelSelector=a%3D%3D%3Db')).toContain('BadRequest');
    expect(await kubectl.refused('get pods --field-selector spec.color=blue')).toContain('field label not supported');
  });
});
