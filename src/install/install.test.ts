// Checks that the files of deploy/ match the description, and that no part has more rights than it needs.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { deployFiles } from '../../test/support/deploy-files.ts';
import type { KubernetesObject } from '../kube/objects/object.ts';
import { objectsByPart, objectsOf } from './objects.ts';
import { defaultValues, partNames, type Values, valueProblems } from './values.ts';

const deploy = fileURLToPath(new URL('../../deploy/', import.meta.url));

interface Workload extends KubernetesObject {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly hostNetwork?: boolean;
        readonly securityContext: { readonly runAsNonRoot?: boolean; readonly sysctls?: readonly object[] };
        readonly containers: readonly {
          readonly securityContext: { readonly readOnlyRootFilesystem: boolean; readonly capabilities: object };
          readonly readinessProbe: object;
          readonly livenessProbe: object;
          readonly resources: object;
        }[];
      };
    };
  };
}

const everything = Object.fromEntries(
  partNames.map((name) => [name, { ...defaultValues[name], enabled: true }]),
) as unknown as Values;
const parts = [...objectsByPart({ ...defaultValues, ...everything })];
const podOf = (objects: readonly { object: KubernetesObject }[]) =>
  objects.map(({ object }) => object as Workload).find(({ kind }) => kind === 'Deployment' || kind === 'DaemonSet')!
    .spec.template.spec;

describe('install: deploy/', () => {
  test.each([...deployFiles()])('%s -> as generated; run node scripts/generate-manifests.ts', (path, text) => {
    expect(existsSync(join(deploy, path))).toBe(true);
    expect(readFileSync(join(deploy, path), 'utf8')).toBe(text);
  });

  test.each(['chart', 'kustomize'])('%s -> has no file that nobody generates', (folder) => {
    const files = (
      readdirSync(join(deploy, folder), { recursive: true, withFileTypes: true }) as import('node:fs').Dirent[]
    )
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(deploy.length));
    expect(files.filter((file) => !deployFiles().has(file))).toEqual([]);
  });
});

describe('install: least privilege', () => {
  test.each(parts)('%s -> read-only, no capability it does not need, probes, requests, not root', (name, objects) => {
    const { hostNetwork = false, securityContext, containers } = podOf(objects);
    const [container] = containers;
    expect(container!.securityContext.readOnlyRootFilesystem).toBe(true);
    const isProxy = name === 'proxy';
    expect(container!.securityContext.capabilities).toEqual({
      drop: ['ALL'],
      ...(isProxy ? { add: ['NET_ADMIN'] } : {}),
    });
    expect([hostNetwork, securityContext.runAsNonRoot === true]).toEqual([isProxy, !isProxy]);
    expect(securityContext.sysctls !== undefined).toBe(name === 'dns' || name === 'authority');
    expect(container).toMatchObject({ readinessProbe: {}, livenessProbe: {}, resources: { requests: {}, limits: {} } });
  });

  test('rights -> no wildcards, nobody escalates, an account for each part', () => {
    const text = JSON.stringify(parts);
    for (const word of ['"*"', '"escalate"', '"bind"', '"impersonate"', 'cluster-admin'])
      expect(text).not.toContain(word);
    for (const [name, objects] of parts) {
      const accounts = objects
        .filter(({ type }) => type.kind === 'ServiceAccount')
        .map(({ object }) => object.metadata.name);
      expect(accounts).toEqual([`portolan-${name}`]);
    }
  });

  test('only the agent may write Services -> nobody else', () => {
    for (const [name, objects] of parts) {
      const rules = objects.flatMap(
        ({ object }) => (object as { rules?: { resources: string[]; verbs: string[] }[] }).rules ?? [],
      );
      const writes = rules.filter(({ resources, verbs }) => resources.includes('services') && verbs.includes('update'));
      expect(writes.length > 0).toBe(name === 'agent');
    }
  });
});

describe('install: values', () => {
  test('the defaults -> nothing is wrong; parts that are off are not installed', () => {
    expect(valueProblems(defaultValues)).toEqual([]);
    const names = objectsOf(defaultValues).map(({ object }) => object.metadata.name);
    expect(names).toContain('portolan-dns');
    expect(names).not.toContain('portolan-peering');
  });

  test.each<[string, Partial<Values>, string]>([
    ['dns without the agent', { agent: { ...defaultValues.agent, enabled: false } }, 'agent.enabled: dns and proxy'],
    ['no replicas', { dns: { ...defaultValues.dns, replicas: 0 } }, 'dns.replicas: 0 is not a number above 0'],
    [
      'a cluster IP that is none',
      { dns: { ...defaultValues.dns, clusterIP: 'x' } },
      'dns.clusterIP: x is no IP address',
    ],
    ['peering without a trust domain', { peering: { ...defaultValues.peering, enabled: true } }, 'peering.trustDomain'],
    [
      'an authority of no federation',
      { authority: { ...defaultValues.authority, enabled: true } },
      'authority.federation',
    ],
    ['a memory that is none', { proxy: { ...defaultValues.proxy, memory: 'much' } }, 'proxy.memory: much'],
  ])('%s -> said with its path', (_what, change, message) => {
    expect(valueProblems({ ...defaultValues, ...change }).join()).toContain(message);
  });
});
