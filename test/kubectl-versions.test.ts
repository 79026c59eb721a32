// The core of what kubectl does, with every kubectl from 1.29 on that this machine has: they ask in different ways.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeWith, kubectls } from './support/counterparts.ts';
import type { Kubectl } from './support/kubectl.ts';
import { KubectlHome } from './support/kubectl-home.ts';

describeWith(['kubectl'], 'kubectl, each version', () => {
  let home: KubectlHome;
  beforeAll(async () => {
    home = new KubectlHome();
    await home.start();
  });
  afterAll(() => home.stop());

  describe.each(kubectls().map(({ minor, path }) => [`1.${minor}`, path] as const))('%s', (version, path) => {
    let kubectl: Kubectl;
    const namespace = `v${version.replace('.', '-')}`;
    beforeAll(() => {
      kubectl = home.kubectl(path);
    });

    test('apply --server-side -> owners by manager, a conflict that names the other, a takeover by force', async () => {
      const map = (data?: object) =>
        JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `ssa-${namespace}` }, data });
      const apply = '-n default apply --server-side -f -';
      expect(await kubectl.ok(apply, map({ x: '1', y: '1' }))).toContain('serverside-applied');
      expect(await kubectl.ok(`${apply} --field-manager=other`, map({ x: '1' }))).toContain('serverside-applied');
      const refused = await kubectl.refused(`${apply} --field-manager=other`, map({ x: '2' }));
      expect(refused).toContain('conflict with "kubectl": .data.x');
      await kubectl.ok(`${apply} --field-manager=other --force-conflicts`, map({ x: '2' }));
      await kubectl.ok(apply, map());
      const left = JSON.parse(
        await kubectl.ok(`-n default get configmap ssa-${namespace} -o json --show-managed-fields`),
      );
      expect(left.data).toEqual({ x: '2' });
      expect(left.metadata.managedFields.map(({ manager }: { manager: string }) => manager)).toEqual(['other']);
    });

    test('apply, then apply --server-side, then apply -> what is left out is removed each time', async () => {
      const map = (data: object) =>
        JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `way-${namespace}` }, data });
      const read = async () => JSON.parse(await kubectl.ok(`-n default get configmap way-${namespace} -o json`)).data;
      await kubectl.ok('-n default apply -f -', map({ a: '1', b: '1' }));
      await kubectl.ok('-n default apply --server-side -f -', map({ a: '2', b: '1' }));
      expect(await read()).toEqual({ a: '2', b: '1' });
      await kubectl.ok('-n default apply -f -', map({ a: '3' }));
      expect(await read()).toEqual({ a: '3' });
    });

    test('create, get, label, patch, replace, delete -> each does what it says', async () => {
      await kubectl.ok(`create namespace ${namespace}`);
      const n = `-n ${namespace}`;
      await kubectl.ok(`create service clusterip web --tcp=80:8080 ${n}`);
      expect(await kubectl.ok(`get service web ${n}`)).toMatch(/web +ClusterIP +10\.\S+ +<none> +80\/TCP/);
      await kubectl.ok(`label service web tier=front ${n}`);
      await kubectl.ok(`annotate service web note=x ${n}`);
      await kubectl.ok(`patch service web -p '{"spec":{"ports":[{"port":81,"name":"more"}]}}' ${n}`);
      expect(await kubectl.ok(`get services -l tier=front ${n} -o jsonpath={.items[0].spec.ports[*].port}`)).toBe(
        '81 80',
      );
      const read = JSON.parse(await kubectl.ok(`get service web ${n} -o json`));
      read.spec.selector = { app: 'other' };
      await kubectl.ok('replace -f -', JSON.stringify(read));
      expect(await kubectl.ok(`get service web ${n} -o jsonpath={.spec.selector.app}`)).toBe('other');
      await kubectl.ok(`delete service web ${n}`);
      expect(await kubectl.refused(`get service web ${n}`)).toContain('services "web" not found');
    });

    test('get -w and wait -> see what happens', async () => {
      const n = `-n ${namespace}`;
      const watch = kubectl.start(`get pods -w --output-watch-events ${n}`);
      await kubectl.ok(`run one --image=nginx ${n}`);
      await watch.until((out) => /ADDED +one +0\/1 +Pending/.test(out));
      const waiting = kubectl.ok(`wait --for=condition=Ready pod/one --timeout=60s ${n}`);
      const status = '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}';
      await kubectl.ok(`patch pod one --subresource=status --type=merge -p '${status}' ${n}`);
      expect(await waiting).toBe('pod/one condition met');
      await watch.until((out) => /MODIFIED +one +\S+ +Running/.test(out));
      await kubectl.ok(`delete pod one ${n}`);
      await watch.until((out) => /DELETED +one/.test(out));
      await watch.stop();
    });

    test('apply, api-resources, explain, describe, auth can-i, events -> as on any cluster', async () => {
      const n = `-n ${namespace}`;
      const object = { apiVersion: 'multicluster.x-k8s.io/v1beta1', kind: 'ServiceExport', metadata: { name: 'web' } };
      expect(await kubectl.ok(`apply ${n} -f -`, JSON.stringify(object))).toContain('created');
      expect(await kubectl.ok(`apply ${n} -f -`, JSON.stringify(object))).toContain('unchanged');
      expect(await kubectl.ok('api-resources')).toMatch(/^serviceimports .*multicluster.x-k8s.io\/v1beta1/m);
      expect(await kubectl.ok('explain service.spec.clusterIP')).toContain('clusterIP');
      expect(await kubectl.ok('explain serviceexport.spec')).toContain('multicluster.x-k8s.io');
      expect(await kubectl.ok(`describe serviceexport web ${n}`)).toMatch(/Kind: +ServiceExport/);
      expect(await kubectl.ok('auth can-i create pods')).toBe('yes');
      expect((await kubectl.run(`events ${n}`)).code).toBe(0);
      expect(await kubectl.refused(`create ${n} -f -`, JSON.stringify({ ...object, specc: {} }))).toContain(
        'unknown field "specc"',
      );
      await kubectl.ok(`delete namespace ${namespace}`);
    });
  });
});
