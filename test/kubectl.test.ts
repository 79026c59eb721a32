// Work with a real kubectl, verb by verb, on a home in a process of its own.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from './support/counterparts.ts';
import type { Kubectl } from './support/kubectl.ts';
import { KubectlHome } from './support/kubectl-home.ts';

describeWith(['kubectl'], 'kubectl', () => {
  let home: KubectlHome;
  let kubectl: Kubectl;
  beforeAll(async () => {
    home = new KubectlHome();
    kubectl = await home.start();
    await kubectl.ok('create namespace shop');
    await kubectl.ok('config set-context --current --namespace=shop');
  });
  afterAll(() => home.stop());

  const value = (path: string, what: string) => kubectl.ok(['get', ...what.split(' '), '-o', `jsonpath=${path}`]);
  const rows = (table: string) => table.split('\n').map((row) => row.trim().split(/ {2,}/));

  test('get: a Service -> the columns of Kubernetes, more with -o wide', async () => {
    await kubectl.ok('create service clusterip columns --tcp=80:8080');
    const [header, row] = rows(await kubectl.ok('get services columns'));
    expect(header).toEqual(['NAME', 'TYPE', 'CLUSTER-IP', 'EXTERNAL-IP', 'PORT(S)', 'AGE']);
    expect(row).toEqual([
      'columns',
      'ClusterIP',
      expect.stringMatching(/^10\./),
      '<none>',
      '80/TCP',
      expect.any(String),
    ]);
    expect(rows(await kubectl.ok('get services columns -o wide'))[1]).toContain('app=columns');
  });

  test('get: -o yaml, json, name and jsonpath -> the whole object, or the part asked for', async () => {
    await kubectl.ok('create configmap formats --from-literal=color=blue');
    expect(await kubectl.ok('get configmap formats -o yaml')).toContain('data:\n  color: blue\nkind: ConfigMap');
    expect(JSON.parse(await kubectl.ok('get configmap formats -o json'))).toMatchObject({ data: { color: 'blue' } });
    expect(await kubectl.ok('get configmap formats -o name')).toBe('configmap/formats');
    expect(await value('{.data.color}', 'configmap formats')).toBe('blue');
  });

  test('get: by label, by field, over all namespaces, and sorted -> only those, in that order', async () => {
    for (const name of ['pick-a', 'pick-b', 'pick-c']) await kubectl.ok(`create configmap ${name}`);
    await kubectl.ok('label configmap pick-a pick-c tier=front');
    expect(await kubectl.ok('get configmap -l tier=front -o name')).toBe('configmap/pick-a\nconfigmap/pick-c');
    expect(await kubectl.ok('get configmap -l tier!=front,tier -o name')).toBe('');
    expect(await kubectl.ok('get configmap --field-selector metadata.name=pick-b -o name')).toBe('configmap/pick-b');
    const everywhere = await kubectl.ok('get services,configmaps -A');
    expect(everywhere).toMatch(/shop +configmap\/pick-a/);
    const sorted = await kubectl.ok('get configmap -l tier --sort-by={.metadata.name} -o name');
    expect(sorted).toBe('configmap/pick-a\nconfigmap/pick-c');
  });

  test('get: in pages of two -> the same list as in one piece', async () => {
    const whole = await kubectl.ok('get clusterroles -o name --chunk-size=0');
    expect(whole.split('\n').length).toBeGreaterThan(4);
    expect(await kubectl.ok('get clusterroles -o name --chunk-size=2')).toBe(whole);
  });

  test('get -w: created, changed, deleted -> a row for each, as it happens', async () => {
    const watch = kubectl.start('get configmaps -w --output-watch-events -l watched=yes');
    const create = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'seen', labels: { watched: 'yes' } } };
    await kubectl.ok('create -f -', JSON.stringify(create));
    await watch.until((out) => /ADDED +seen +0/.test(out));
    await kubectl.ok(`patch configmap seen --type=merge -p '{"data":{"a":"b"}}'`);
    await watch.until((out) => /MODIFIED +seen +1/.test(out));
    await kubectl.ok('delete configmap seen');
    await watch.until((out) => /DELETED +seen +1/.test(out));
    await watch.stop();
  });

  test('get -w: an object loses the label watched for -> it is shown as deleted', async () => {
    await kubectl.ok('create configmap leaver');
    await kubectl.ok('label configmap leaver watched=leaver');
    const watch = kubectl.start('get configmaps -w --output-watch-events -l watched=leaver');
    await watch.until((out) => /ADDED +leaver/.test(out));
    await kubectl.ok('label configmap leaver watched-');
    await watch.until((out) => /DELETED +leaver/.test(out));
    await watch.stop();
  });

  test('create: namespaces, secrets, accounts, workloads and roles by their own verbs -> are there', async () => {
    await kubectl.ok('create namespace second');
    await kubectl.ok('create secret generic login --from-literal=password=x');
    await kubectl.ok('create serviceaccount robot');
    await kubectl.ok('create deployment web --image=nginx --replicas=2');
    await kubectl.ok('create role reader --verb=get,list --resource=pods');
    await kubectl.ok('create rolebinding robot-reads --role=reader --serviceaccount=shop:robot');
    await kubectl.ok('create clusterrole everywhere --verb=get --resource=nodes');
    const names = 'secret/login serviceaccount/robot deployment/web role/reader rolebinding/robot-reads';
    expect((await kubectl.ok(`get ${names} -o name`)).split('\n')).toHaveLength(5);
    expect(await value('{.data.password}', 'secret login')).toBe('eA==');
    expect(await value('{.spec.replicas} {.spec.template.spec.restartPolicy}', 'deployment web')).toBe('2 Always');
    expect(await kubectl.ok('get clusterrole/everywhere namespace/second -o name')).toContain('namespace/second');
  });

  test('create: with generateName -> a name of the server, another each time', async () => {
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'made-' } };
    const first = await kubectl.ok('create -f - -o name', JSON.stringify(object));
    const second = await kubectl.ok('create -f - -o name', JSON.stringify(object));
    expect(first).toMatch(/^configmap\/made-[a-z0-9]{5}$/);
    expect(second).not.toBe(first);
  });

  test('create: --dry-run=server -> the object as it would be, and nothing stored', async () => {
    const line =
      'create service clusterip dry --tcp=80 --dry-run=server -o jsonpath={.spec.type}/{.spec.ipFamilies[0]}';
    expect(await kubectl.ok(line)).toBe('ClusterIP/IPv4');
    expect(await kubectl.refused('get service dry')).toContain('services "dry" not found');
  });

  test('create: several documents in one file -> all of them', async () => {
    const document = (name: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n`;
    const out = await kubectl.ok('create -f -', `${document('many-1')}---\n${document('many-2')}`);
    expect(out).toBe('configmap/many-1 created\nconfigmap/many-2 created');
  });

  test('scale: a Deployment -> as many as said, if there are as many as expected; the manager is told', async () => {
    await kubectl.ok('create deployment crew --image=nginx --replicas=2');
    expect(await kubectl.refused('scale deployment crew --replicas=5 --current-replicas=3')).toContain('replicas');
    await kubectl.ok('scale deployment crew --replicas=5 --current-replicas=2');
    expect(await value('{.spec.replicas}', 'deployment crew')).toBe('5');
    const { metadata } = JSON.parse(await kubectl.ok('get deployment crew -o json --show-managed-fields'));
    const managers = metadata.managedFields.map((entry: { manager: string; subresource?: string }) => [
      entry.manager,
      entry.subresource,
    ]);
    expect(managers).toContainEqual(['kubectl-create', undefined]);
    expect(managers).toContainEqual([expect.stringMatching(/^kubectl/), 'scale']);
  });

  test('replace: the whole object -> what was not given is gone, the uid stays', async () => {
    await kubectl.ok('create configmap whole --from-literal=a=1 --from-literal=b=2');
    const uid = await value('{.metadata.uid}', 'configmap whole');
    const next = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'whole' }, data: { b: '3' } };
    await kubectl.ok('replace -f -', JSON.stringify(next));
    expect(await value('{.data}', 'configmap whole')).toBe('{"b":"3"}');
    expect(await value('{.metadata.uid}', 'configmap whole')).toBe(uid);
    await kubectl.ok('replace --force -f -', JSON.stringify(next));
    expect(await value('{.metadata.uid}', 'configmap whole')).not.toBe(uid);
  });

  test('label and annotate: add, change and remove -> only that one changes', async () => {
    await kubectl.ok('create configmap marked');
    await kubectl.ok('label configmap marked a=1 b=2');
    expect(await kubectl.refused('label configmap marked a=3')).toContain("'a' already has a value (1)");
    await kubectl.ok('label configmap marked a=3 --overwrite');
    await kubectl.ok('label configmap marked b-');
    expect(await value('{.metadata.labels}', 'configmap marked')).toBe('{"a":"3"}');
    await kubectl.ok(['annotate', 'configmap', 'marked', 'note=two words']);
    expect(await value('{.metadata.annotations.note}', 'configmap marked')).toBe('two words');
    await kubectl.ok('annotate configmap marked note-');
    expect(await value('{.metadata.annotations}', 'configmap marked')).toBe('');
    expect(await kubectl.ok('label configmap marked a=3 --overwrite')).toContain('not labeled');
  });

  test('patch: merge, json and strategic -> each by its own rules', async () => {
    await kubectl.ok('create service clusterip patched --tcp=80');
    await kubectl.ok(`patch service patched --type=merge -p '{"spec":{"selector":{"app":null,"tier":"x"}}}'`);
    expect(await value('{.spec.selector}', 'service patched')).toBe('{"tier":"x"}');
    await kubectl.ok(
      `patch service patched --type=json -p '[{"op":"replace","path":"/spec/ports/0/name","value":"web"}]'`,
    );
    expect(await value('{.spec.ports[*].name}', 'service patched')).toBe('web');
    // Strategic: a list whose items are told apart by their port grows, where merge would replace it.
    await kubectl.ok(`patch service patched -p '{"spec":{"ports":[{"port":443,"name":"tls"}]}}'`);
    expect(await value('{.spec.ports[*].port}', 'service patched')).toBe('443 80');
    await kubectl.ok(`patch service patched -p '{"spec":{"ports":[{"port":443,"$patch":"delete"}]}}'`);
    expect(await value('{.spec.ports[*].port}', 'service patched')).toBe('80');
  });

  test('patch: --subresource=status -> the status alone, and spec only without it', async () => {
    await kubectl.ok('run patched --image=nginx');
    const both = '{"status":{"phase":"Running"},"metadata":{"labels":{"x":"y"}}}';
    await kubectl.ok(`patch pod patched --subresource=status --type=merge -p '${both}'`);
    expect(await value('{.status.phase} {.metadata.labels.x}', 'pod patched')).toBe('Running');
    await kubectl.ok(`patch pod patched --type=merge -p '${both.replace('Running', 'Failed')}'`);
    expect(await value('{.status.phase} {.metadata.labels.x}', 'pod patched')).toBe('Running y');
  });

  test('delete: by name, by label and all -> those are gone', async () => {
    for (const name of ['gone-1', 'gone-2', 'gone-3']) await kubectl.ok(`create secret generic ${name}`);
    await kubectl.ok('label secret gone-2 go=yes');
    await kubectl.ok('delete secret gone-1');
    expect(await kubectl.ok('delete secret -l go=yes')).toMatch(/^secret "gone-2" deleted/);
    expect(await kubectl.ok('get secret gone-3 -o name')).toBe('secret/gone-3');
    await kubectl.ok('delete secrets --all');
    expect(await kubectl.ok('get secrets -o name')).toBe('');
    expect(await kubectl.ok('delete secret gone-1 --ignore-not-found')).toBe('');
  });

  test('delete: an owner -> what it owns goes too, or stays with --cascade=orphan', async () => {
    for (const cascade of ['background', 'foreground', 'orphan']) {
      await kubectl.ok(`create configmap owner-${cascade}`);
      const uid = await value('{.metadata.uid}', `configmap owner-${cascade}`);
      const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: `owner-${cascade}`, uid, blockOwnerDeletion: true };
      const metadata = { name: `owned-${cascade}`, ownerReferences: [owner] };
      await kubectl.ok('create -f -', JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata }));
      await kubectl.ok(`delete configmap owner-${cascade} --cascade=${cascade}`);
    }
    await kubectl.ok('wait --for=delete configmap/owned-background configmap/owned-foreground --timeout=30s');
    expect(await value('{.metadata.ownerReferences}', 'configmap owned-orphan')).toBe('');
  });

  test('delete: with a finalizer -> stays marked until it is removed', async () => {
    const metadata = { name: 'held', finalizers: ['example.com/hold'] };
    await kubectl.ok('create -f -', JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata }));
    await kubectl.ok('delete configmap held --wait=false');
    expect(await value('{.metadata.deletionTimestamp}', 'configmap held')).toMatch(/^20/);
    await kubectl.ok(`patch configmap held --type=merge -p '{"metadata":{"finalizers":null}}'`);
    expect(await kubectl.refused('get configmap held')).toContain('not found');
  });

  test('delete: a namespace -> everything in it goes, and kubectl waits for that', async () => {
    await kubectl.ok('create namespace emptied');
    await kubectl.ok('create configmap inside -n emptied');
    await kubectl.ok('create service clusterip inside --tcp=80 -n emptied');
    await kubectl.ok('delete namespace emptied');
    expect(await kubectl.refused('get namespace emptied')).toContain('namespaces "emptied" not found');
    expect(await kubectl.ok('get configmaps,services -n emptied -o name')).toBe('');
  });

  test('wait: for a condition, a field, and the end -> returns when it is so, and not before', async () => {
    await kubectl.ok('run waited --image=nginx');
    const early = await kubectl.refused('wait --for=condition=Ready pod/waited --timeout=1s');
    expect(early).toContain('timed out waiting for the condition');
    const waiting = kubectl.ok('wait --for=condition=Ready pod/waited --timeout=60s');
    const status = '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}';
    await kubectl.ok(`patch pod waited --subresource=status --type=merge -p '${status}'`);
    expect(await waiting).toBe('pod/waited condition met');
    await kubectl.ok('wait --for=jsonpath={.status.phase}=Running pod/waited --timeout=60s');
    const ending = kubectl.ok('wait --for=delete pod/waited --timeout=60s');
    await kubectl.ok('delete pod waited');
    await ending;
  });

  test('api-resources and api-versions: -> every kind with its group, short names and verbs', async () => {
    const table = await kubectl.ok('api-resources -o wide');
    expect(table).toMatch(/^services +svc +v1 +true +Service +create,delete/m);
    expect(table).toMatch(/^endpointslices +discovery.k8s.io\/v1 +true +EndpointSlice/m);
    expect(table).toMatch(/^serviceexports +\S+ +multicluster.x-k8s.io\/v1beta1 +true +ServiceExport/m);
    const ours = (await kubectl.ok('api-resources --categories=portolan --no-headers -o name')).split('\n');
    expect(ours).toContain('clustersets.portolan.dev');
    expect(await kubectl.ok('api-resources --namespaced=false -o name')).not.toContain('services\n');
    expect((await kubectl.ok('api-versions')).split('\n')).toContain('rbac.authorization.k8s.io/v1');
  });

  test('explain: a built-in kind, one of ours, and all fields at once -> types and what they mean [003-15]', async () => {
    const ports = await kubectl.ok('explain service.spec.ports');
    expect(ports).toMatch(/KIND: +Service\nVERSION: +v1/);
    expect(ports).toMatch(/targetPort\t<IntOrString>\n {4}\S/);
    expect(await kubectl.ok('explain serviceexport.status')).toMatch(/GROUP: +multicluster.x-k8s.io/);
    expect(await kubectl.ok('explain endpointslices --recursive')).toMatch(/conditions\t<EndpointConditions>/);
    expect(await kubectl.refused('explain service.spec.nothing')).toContain('field "nothing" does not exist');
  });

  test('describe: a Service, a Pod, a Node and an object of ours -> all there is to say, with events', async () => {
    await kubectl.ok('create service clusterip told --tcp=80:8080');
    const service = await kubectl.ok('describe service told');
    expect(service).toMatch(/^Port: +80-8080 +80\/TCP$/m);
    expect(service).toMatch(/^Selector: +app=told$/m);
    await kubectl.ok('run told --image=nginx:1 --port=80');
    expect(await kubectl.ok('describe pod told')).toMatch(/Image: +nginx:1/);
    const node = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'told', labels: { 'topology.kubernetes.io/zone': 'z' } },
    };
    await kubectl.ok('create -f -', JSON.stringify(node));
    expect(await kubectl.ok('describe node told')).toContain('topology.kubernetes.io/zone=z');
    const serviceExport = {
      apiVersion: 'multicluster.x-k8s.io/v1beta1',
      kind: 'ServiceExport',
      metadata: { name: 'told' },
    };
    await kubectl.ok('create -f -', JSON.stringify(serviceExport));
    expect(await kubectl.ok('describe serviceexport told')).toMatch(/^Kind: +ServiceExport$/m);
  });

  test('events: one about an object -> shown by events and in its description', async () => {
    await kubectl.ok('create service clusterip eventful --tcp=80');
    const uid = await value('{.metadata.uid}', 'service eventful');
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'eventful.1' },
      involvedObject: { apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: 'eventful', uid },
      reason: 'Exported',
      message: 'exported to clusterset prod',
      type: 'Normal',
      source: { component: 'test' },
      firstTimestamp: '2026-01-01T00:00:00Z',
      lastTimestamp: '2026-01-01T00:00:00Z',
      count: 1,
    };
    await kubectl.ok('create -f -', JSON.stringify(event));
    expect(await kubectl.ok('events --for service/eventful')).toMatch(
      /Normal +Exported +Service\/eventful +exported to/,
    );
    expect(await kubectl.ok('get events --field-selector reason=Exported -o name')).toBe('event/eventful.1');
    expect(await kubectl.ok('describe service eventful')).toMatch(/Exported +\S+ +test +exported to clusterset prod/);
  });

  test('apply: a new object, a change, a field taken away, nothing new -> created, configured, unchanged', async () => {
    const service = (spec: object) =>
      JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'kept' }, spec });
    const ports = [{ name: 'http', port: 80 }];
    expect(await kubectl.ok('apply -f -', service({ ports, selector: { a: 'b' } }))).toBe('service/kept created');
    const address = await value('{.spec.clusterIP}', 'service kept');
    expect(await kubectl.ok('apply -f -', service({ ports, selector: { a: 'b' } }))).toBe('service/kept unchanged');
    expect(await kubectl.ok('apply -f -', service({ ports }))).toBe('service/kept configured');
    expect(await value('{.spec.selector}', 'service kept')).toBe('');
    expect(await value('{.spec.clusterIP}', 'service kept')).toBe(address);
    const { code, out } = await kubectl.run('diff -f -', service({ ports: [{ name: 'http', port: 81 }] }));
    expect(code).toBe(1);
    expect(out).toMatch(/^- +port: 80$/m);
  });

  test('apply: an object of a custom kind -> merged, since strategic patches are for built-in kinds', async () => {
    const shard = (annotations: object) =>
      JSON.stringify({
        apiVersion: 'multicluster.x-k8s.io/v1beta1',
        kind: 'ServiceExport',
        metadata: { name: 'kept', annotations },
      });
    expect(await kubectl.ok('apply -f -', shard({ a: '1', b: '2' }))).toContain('created');
    expect(await kubectl.ok('apply -f -', shard({ a: '3' }))).toContain('configured');
    expect(await value('{.metadata.annotations.a} {.metadata.annotations.b}', 'serviceexport kept')).toBe('3');
  });

  test('edit, run, expose and set image: -> as on any cluster', async () => {
    await kubectl.ok('create configmap edited --from-literal=color=blue');
    const editor = join(home.directory, 'editor.sh');
    writeFileSync(editor, '#!/bin/sh\nsed -i s/blue/green/ "$1"\n', { mode: 0o755 });
    await kubectl.ok('edit configmap edited', '', { KUBE_EDITOR: editor });
    expect(await value('{.data.color}', 'configmap edited')).toBe('green');
    await kubectl.ok('create deployment exposed --image=nginx:1');
    await kubectl.ok('set image deployment/exposed nginx=nginx:2');
    expect(await value('{.spec.template.spec.containers[0].image}', 'deployment exposed')).toBe('nginx:2');
    await kubectl.ok('expose deployment exposed --port=80 --target-port=8080');
    expect(await value('{.spec.selector.app} {.spec.ports[0].targetPort}', 'service exposed')).toBe('exposed 8080');
  });

  test('version, cluster-info and get --raw: -> the server answers for itself', async () => {
    expect(JSON.parse(await kubectl.ok('version -o json')).serverVersion.gitVersion).toMatch(/^v1\.\d+\.\d+-portolan$/);
    expect(await kubectl.ok('cluster-info')).toContain(`https://127.0.0.1:${home.api.port}`);
    expect(await kubectl.ok('get --raw /readyz')).toBe('ok');
    expect(await kubectl.ok('get --raw /metrics')).toMatch(/^portolan_api_requests_total\{verb="create"/m);
  });
});
