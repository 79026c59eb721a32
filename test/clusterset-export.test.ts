// Three members with agents as processes: exports and imports, and what status, plan and explain show of them. The tests follow
// each other.

import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { importLine, sliceLines } from '../sim/look.ts';
import type { KubernetesObject, ResourceType } from '../src/kube/objects/object.ts';
import { everything, type TestHome, until } from './support/clusterset.ts';
import { key, MemberSet } from './support/member-set.ts';

const members = new MemberSet();
let broker: TestHome;
let east: TestHome;
let west: TestHome;
let north: TestHome;

beforeAll(async () => {
  ({ broker, east, west, north } = await members.joinMembers());
});
afterAll(() => members.stop());

describe('agents as processes', () => {
  test('agent: one for each cluster -> they lead, are ready and measured [003-12]', async () => {
    await members.startAgents();
    for (const agent of members.agents.values()) {
      expect(await (await fetch(`${agent.admin}/readyz`)).text()).toBe('ok\n');
      expect(await (await fetch(`${agent.admin}/livez`)).text()).toBe('ok\n');
      expect(await (await fetch(`${agent.admin}/metrics`)).text()).toContain('portolan_agent_leading 1');
    }
  });

  test('export: in one cluster -> import and slices in the others [002-07, 002-18]', async () => {
    await members.at(east, `register ${key} --address 10.1.0.5 --port http=80:8080`);
    const { lines } = await members.at(east, `export ${key} --wait`);
    expect(lines).toEqual([`${key} is exported`, `${key} is ready: exported to the clusterset`]);
    for (const home of [east, west, north]) {
      const imported = 'ClusterSetIP http:80/TCP from east';
      await until('imported', async () => (await importLine(home.client, key)) === imported);
      await until('slices', async () => (await sliceLines(home.client, key)).length === 1);
      expect(await sliceLines(home.client, key)).toEqual(['east: 10.1.0.5 on http>8080']);
    }
  });

  test('export: how long it took -> measured, by the exporter until it is published and by importers until it is there', async () => {
    const textOf = async (home: TestHome) => (await fetch(`${members.agents.get(home.name)!.admin}/metrics`)).text();
    for (const [home, queue] of [
      [east, 'export'],
      [west, 'import'],
    ] as const) {
      for (const part of ['wait', 'work'])
        expect(await textOf(home)).toMatch(
          new RegExp(`^portolan_queue_${part}_seconds_count\\{queue="${queue}"\\} [1-9]`, 'm'),
        );
    }
  });

  test('export: a second cluster -> both behind the import, its id of two labels in the slices [002-22]', async () => {
    await members.at(west, `register ${key} --address 10.2.0.5 --port http=80:8080`);
    await members.at(west, `export ${key} --wait`);
    for (const home of [east, west, north]) {
      await until('both', async () => (await sliceLines(home.client, key)).length === 2);
      expect(await importLine(home.client, key)).toBe('ClusterSetIP http:80/TCP from east,west.eu');
    }
  });
});

describe('what a person types', () => {
  test('status: clusters, leases, services, conflicts, lag -> in a table, and in JSON', async () => {
    const { lines } = await members.at(north, 'status');
    const text = lines.join('\n');
    expect(text).toMatch(/^clusterset prod at https:\/\/\S+, this cluster is north/);
    expect(text).toMatch(/^east +eu +a +alive +\d+s ago +1 +1$/m);
    expect(text).toMatch(/^shop\/checkout +ClusterSetIP +east,west\.eu +- +in step$/m);
    expect(text).toContain('1 service, 0 in conflict');
    expect(text).toContain('lag: none');
    const json = JSON.parse((await members.at(north, 'status -o json')).lines.join('\n'));
    expect(json).toMatchObject({
      cluster: 'north',
      behind: [],
      clusters: [{ id: 'east' }, { id: 'north' }, { id: 'west.eu' }],
    });
    expect((await members.at(north, 'status -o yaml')).lines[0]).toContain('clusterset: ');
    expect((await members.at(north, 'status -o name')).lines).toContain(key);
    await expect(members.at(north, 'status -o xml')).rejects.toThrow('write text, wide, json, yaml, name');
  });

  test('plan: an export that would conflict -> said with exit code 9, and nothing is changed [003-03]', async () => {
    await members.at(north, `register ${key} --address 10.3.0.5 --port http=81:8080`);
    const file = members.set.write('export.yaml', exportYaml('checkout'));
    const before = [await everything(broker.client), await everything(north.client)];
    const { lines, exitCode } = await members.at(north, `plan -f ${file}`);
    expect(exitCode).toBe(9);
    expect(lines.join('\n')).toMatch(
      /Conflict +True +PortConflict +spec\.ports\[http\]: using "http" TCP\/80 of cluster east/,
    );
    expect(lines.join('\n')).toContain('in cluster east: Conflict False/NoConflicts would become True/PortConflict');
    expect([await everything(broker.client), await everything(north.client)]).toEqual(before);
    const json = JSON.parse((await members.at(north, `plan -f ${file} -o json`)).lines.join('\n'));
    expect(json.exports[0].conflicts[0]).toMatchObject({ reason: 'PortConflict', winner: 'east' });
  });

  test('plan: missing service, fine export, another type, bad file -> exit codes 7, 0, 7 and errors', async () => {
    const nothing = members.set.write('nothing.yaml', exportYaml('nothing'));
    expect((await members.at(north, `plan -f ${nothing}`)).exitCode).toBe(7);
    const fine = members.set.write('fine.yaml', `${exportYaml('fine')}---\n${serviceYaml('fine')}`);
    expect((await members.at(north, `plan -f ${fine}`)).exitCode).toBe(0);
    const headless = members.set.write(
      'headless.yaml',
      `${exportYaml('checkout')}---\n${serviceYaml('checkout', 'None')}`,
    );
    await expect(members.at(north, `plan -f ${headless}`)).rejects.toThrow('clusterIP');
    const list = members.set.write('list.yaml', 'kind: List\nitems: [{a: 1}]\n');
    await expect(members.at(north, `plan -f ${list}`)).rejects.toThrow('document 1 is not an object');
    await expect(members.at(north, 'plan -f /nowhere')).rejects.toThrow('-f /nowhere: no such file');
  });

  test('export: would conflict -> warned, done, and explained field by field', async () => {
    const { lines } = await members.at(north, `export ${key} --wait`);
    expect(lines[0]).toBe(
      'warning: PortConflict: spec.ports[http] differs between clusters; "http" TCP/80 of cluster east is used',
    );
    const text = (await members.at(west, `explain ${key}`)).lines.join('\n');
    expect(text).toMatch(/decided by cluster east \((the oldest export|exported at \S+ like that of west\.eu)/);
    expect(text).toMatch(/^north +\S+ +alive +yes +- +1 +all$/m);
    expect(text).toContain('north says "http" TCP/81');
    expect(text).toContain('if a cluster left:');
    const json = JSON.parse((await members.at(west, `explain ${key} -o json`)).lines.join('\n'));
    expect(json).toMatchObject({ service: key, decider: 'east', conflicts: [{ reason: 'PortConflict' }] });
    await until('status says so', async () =>
      (await members.at(west, 'status')).lines.join('\n').includes('lag: none'),
    );
    const status = (await members.at(west, 'status')).lines.join('\n');
    expect(status).toMatch(/^shop\/checkout +ClusterSetIP +east,north,west\.eu +PortConflict +in step$/m);
    expect(status).toContain('1 service, 1 in conflict (portolan explain NAMESPACE/NAME says why)');
    await expect(members.at(west, 'explain shop/none')).rejects.toThrow(
      'service shop/none: no cluster of the clusterset exports it',
    );
  });

  test('export: system namespaces, no such namespace, no service yet, unknown clusters -> refused, or warned [003-38]', async () => {
    await expect(members.at(north, 'export kube-system/dns')).rejects.toThrow('give --allow-system if you mean it');
    await expect(members.at(north, 'export default/web')).rejects.toThrow('give --allow-system if you mean it');
    await expect(members.at(north, 'export none/web')).rejects.toThrow('there is no namespace none');
    await expect(members.at(north, 'export default/web --allow-system --to east,mars')).rejects.toThrow(
      'the clusterset has no cluster mars',
    );
    const { lines } = await members.at(north, 'export default/web --allow-system --to east');
    expect(lines).toEqual([
      'warning: service default/web does not exist in this cluster; create it',
      'default/web: the export is written; nothing is exported until a Service of that name exists',
    ]);
    await expect(members.at(north, 'export default/web --allow-system --wait --timeout 1')).rejects.toThrow(
      'export default/web: not done after 1 s: service default/web does not exist in this cluster',
    );
    expect((await members.at(north, 'unexport default/web')).lines).toContain('default/web is no longer exported');
    expect((await members.at(north, 'unexport default/web')).lines).toEqual(['default/web is not exported']);
  });

  test('export: another type than the oldest -> warned that it is not part of the import [003-51]', async () => {
    await east.client.create({ ...serviceTypeOf() }, serviceObject('flip', '10.96.7.7'));
    await members.at(east, 'export shop/flip --wait');
    await west.client.create({ ...serviceTypeOf() }, serviceObject('flip', 'None'));
    await pause(1_100);
    const { lines } = await members.at(west, 'export shop/flip');
    expect(lines).toContainEqual(expect.stringContaining('warning: TypeConflict: spec.type differs'));
    expect(lines).toContainEqual(expect.stringContaining('not part of the import while its type differs'));
    await until('west is left out', async () => {
      const [own] = (await members.at(east, 'status -o json')).lines;
      return JSON.parse(own!).services.some(({ excluded }: { excluded: string[] }) => excluded.includes('west.eu'));
    });
    const leaving = await members.at(east, 'unexport shop/flip --wait');
    expect(leaving.lines).toContain(
      'warning: the type of shop/flip would flip from ClusterSetIP to Headless in every cluster',
    );
    await members.at(west, 'unexport shop/flip --wait');
  });
});

function exportYaml(name: string): string {
  return `apiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceExport\nmetadata: {name: ${name}, namespace: shop}\n`;
}

function serviceYaml(name: string, clusterIP?: string): string {
  const ip = clusterIP === undefined ? '' : `clusterIP: ${clusterIP}, `;
  return `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}, namespace: shop}\nspec: {${ip}ports: [{name: http, port: 80}]}\n`;
}

function serviceTypeOf(): ResourceType {
  return { group: '', version: 'v1', plural: 'services', kind: 'Service', isNamespaced: true };
}

function serviceObject(name: string, clusterIP: string): KubernetesObject & { spec: object } {
  const spec = { clusterIP, ports: [{ name: 'http', port: 80 }] };
  return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'shop' }, spec };
}
