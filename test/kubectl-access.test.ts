// Rights and custom kinds, as a real kubectl shows them.

import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith, pathOf } from './support/counterparts.ts';
import { type Kubectl, until } from './support/kubectl.ts';
import { KubectlHome } from './support/kubectl-home.ts';

describeWith(['kubectl'], 'kubectl: access and custom kinds', () => {
  let home: KubectlHome;
  let kubectl: Kubectl;
  beforeAll(async () => {
    home = new KubectlHome();
    kubectl = await home.start();
    await kubectl.ok('create namespace shop');
    await kubectl.ok('create serviceaccount robot -n shop');
    await kubectl.ok('create role reader -n shop --verb=get,list,watch --resource=services');
    await kubectl.ok('create rolebinding robot-reads -n shop --role=reader --serviceaccount=shop:robot');
  });
  afterAll(() => home.stop());

  const robot = '--as=system:serviceaccount:shop:robot --as-group=system:authenticated';

  test('auth can-i: as the admin -> everything; as a service account -> what its role says [003-36]', async () => {
    expect(await kubectl.ok('auth can-i delete nodes')).toBe('yes');
    expect(await kubectl.ok(`auth can-i list services -n shop ${robot}`)).toBe('yes');
    const { code, out } = await kubectl.run(`auth can-i delete services -n shop ${robot}`);
    expect([code, out.trim()]).toEqual([1, 'no']);
    expect((await kubectl.run(`auth can-i list services -n default ${robot}`)).out.trim()).toBe('no');
    expect(await kubectl.ok(`auth can-i --list -n shop ${robot}`)).toMatch(
      /^services +\[\] +\[\] +\[get list watch\]$/m,
    );
    expect(await kubectl.ok(`auth can-i get /livez ${robot}`)).toBe('yes');
  });

  test('auth whoami: -> the user of the certificate, or the one acted as', async () => {
    expect(await kubectl.ok('auth whoami')).toMatch(/Username +admin\nGroups +\[system:masters system:authenticated\]/);
    expect(await kubectl.ok(`auth whoami ${robot}`)).toMatch(/Username +system:serviceaccount:shop:robot/);
  });

  test('create token: used by another kubectl -> may do what the account may, and no more', async () => {
    const token = await kubectl.ok('create token robot -n shop --duration=1h');
    const config = JSON.parse(await kubectl.ok('config view --raw -o json'));
    config.users[0].user = { token };
    const kubeconfig = `${home.directory}/robot.kubeconfig`;
    writeFileSync(kubeconfig, JSON.stringify(config));
    const other = home.kubectl(pathOf('kubectl')!, kubeconfig);
    expect(await other.ok('get services -n shop -o name')).toBe('');
    const error = await other.refused('create configmap no -n shop');
    expect(error).toContain('configmaps is forbidden: User "system:serviceaccount:shop:robot" cannot create resource');
    expect(await other.ok('auth whoami -o jsonpath={.status.userInfo.username}')).toBe(
      'system:serviceaccount:shop:robot',
    );
    await kubectl.ok('delete serviceaccount robot -n shop');
    await until(async () => (await other.run('get services -n shop')).err.includes('Unauthorized'));
    await kubectl.ok('create serviceaccount robot -n shop');
  });

  test('a role with more than its writer has -> escalation is refused', async () => {
    await kubectl.ok('create role binder -n shop --verb=create --resource=roles,rolebindings');
    await kubectl.ok('create rolebinding robot-binds -n shop --role=binder --serviceaccount=shop:robot');
    const more = await kubectl.refused(`create role more -n shop --verb=delete --resource=secrets ${robot}`);
    expect(more).toContain('is attempting to grant RBAC permissions not currently held');
    await kubectl.ok(`create role same -n shop --verb=get --resource=services ${robot}`);
    const bind = await kubectl.refused(
      `create rolebinding admin -n shop --clusterrole=admin --serviceaccount=shop:robot ${robot}`,
    );
    expect(bind).toContain('is attempting to grant RBAC permissions not currently held');
  });

  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'boats.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'boats', singular: 'boat', kind: 'Boat', shortNames: ['bt'], categories: ['all'] },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: [{ name: 'Sails', type: 'integer', jsonPath: '.spec.sails' }],
          schema: {
            openAPIV3Schema: {
              type: 'object',
              required: ['spec'],
              properties: {
                spec: {
                  type: 'object',
                  required: ['port'],
                  properties: {
                    sails: { type: 'integer', minimum: 1, default: 2, description: 'How many sails it carries.' },
                    port: { type: 'string', pattern: '^[a-z]+$' },
                  },
                },
                status: { type: 'object', properties: { berth: { type: 'string' } } },
              },
            },
          },
        },
        {
          name: 'v1alpha1',
          served: true,
          storage: false,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  };
  const boat = (spec: object) =>
    JSON.stringify({ apiVersion: 'example.com/v1', kind: 'Boat', metadata: { name: 'tern', namespace: 'shop' }, spec });

  test('a definition of their own -> served, explained, printed, defaulted, checked, with status apart', async () => {
    await kubectl.ok('create -f -', JSON.stringify(definition));
    await kubectl.ok('wait --for=condition=Established crd/boats.example.com --timeout=30s');
    expect(await kubectl.refused('create -f -', boat({ port: 'UPPER', sails: 0 }))).toMatch(
      /spec.port: Invalid value: "UPPER"[\s\S]*spec.sails: Invalid value: 0/,
    );
    expect(await kubectl.refused('create -f -', boat({ port: 'x', color: 'red' }))).toContain(
      'unknown field "spec.color"',
    );
    await kubectl.ok('create -f -', boat({ port: 'genoa' }));
    expect(await kubectl.ok('get bt -n shop')).toMatch(/NAME +SAILS( +AGE)?\ntern +2/);
    expect(await kubectl.ok('explain boat.spec.sails')).toContain('How many sails it carries.');
    expect(await kubectl.ok('get all -n shop -o name')).toContain('boat.example.com/tern');
    expect(await kubectl.ok('get boats.v1alpha1.example.com -n shop -o jsonpath={.items[0].apiVersion}')).toBe(
      'example.com/v1alpha1',
    );
  });

  test('its status and its generation -> status is apart, the spec counts', async () => {
    const both = '{"status":{"berth":"3"},"spec":{"sails":4}}';
    await kubectl.ok(`patch boat tern -n shop --subresource=status --type=merge -p '${both}'`);
    const show = '-o jsonpath={.status.berth}/{.spec.sails}/{.metadata.generation}';
    expect(await kubectl.ok(`get boat tern -n shop ${show}`)).toBe('3/2/1');
    await kubectl.ok(`patch boat tern -n shop --type=merge -p '${both.replace('"3"', '"9"')}'`);
    expect(await kubectl.ok(`get boat tern -n shop ${show}`)).toBe('3/4/2');
  });

  test('the definition goes -> so does the kind, with all its objects', async () => {
    await kubectl.ok('delete crd boats.example.com');
    expect(await kubectl.refused('get boats -n shop')).toContain('could not find the requested resource');
    await kubectl.ok('create -f -', JSON.stringify(definition));
    await kubectl.ok('wait --for=condition=Established crd/boats.example.com --timeout=30s');
    expect(await kubectl.ok('get boats -n shop -o name')).toBe('');
  });
});
