// External services for tests, from a few words.

import { parse } from 'yaml';
import type { HostnameGenerator } from '../kinds/hostname-generator.ts';
import type { MeshExternalService } from '../kinds/mesh-external-service.ts';

export interface ServiceWords {
  readonly name?: string;
  readonly created?: string;
  readonly origin?: 'home' | 'broker';
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  /** By hostname. */
  readonly vips?: Record<string, string>;
}

/** `spec` is YAML. */
export function externalService(spec: string, words: ServiceWords = {}): MeshExternalService {
  const { name = 'example', created = '2026-01-01T00:00:00Z', origin = 'home', vips = {} } = words;
  const isCopy = origin === 'broker';
  return {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'MeshExternalService',
    metadata: {
      name: isCopy ? `${name}.broker` : name,
      namespace: 'portolan-system',
      creationTimestamp: created,
      labels: { ...words.labels, ...(isCopy ? { 'portolan.dev/origin': 'broker' } : {}) },
      annotations: { ...words.annotations },
    },
    spec: parse(spec) as MeshExternalService['spec'],
    status: { vips: Object.entries(vips).map(([hostname, ip]) => ({ ip, type: 'Portolan', hostname })) },
  };
}

export function hostnameGenerator(name: string, spec: string, annotations = {}): HostnameGenerator {
  return {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'HostnameGenerator',
    metadata: {
      name: `${name}.broker`,
      namespace: 'portolan-system',
      labels: { 'portolan.dev/origin': 'broker' },
      annotations,
    },
    spec: parse(spec) as HostnameGenerator['spec'],
  };
}
