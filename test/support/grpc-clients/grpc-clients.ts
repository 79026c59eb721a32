// Real gRPC clients that resolve names by xDS, each in a process of its own, and backends that say their names.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import * as grpc from '@grpc/grpc-js';
import { grpcBootstrap } from '../../../src/xds/identity/bootstrap.ts';
import { pathOf } from '../counterparts.ts';
import { cluster, type XdsTest } from '../xds.ts';

export type ClientLanguage = 'javascript' | 'python';

interface CallOptions {
  /** Calls that do not wait fail without a connection. */
  readonly waits?: boolean;
  /** Instead of the target before. */
  readonly target?: string;
  /** How many are under way at a time: one after the other if absent. */
  readonly lanes?: number;
}

export interface GrpcClient {
  /** How many calls each backend answered. */
  calls(count: number, options?: CallOptions): Promise<Record<string, number>>;
  stop(): void;
}

const scripts = {
  javascript: new URL('./client.mjs', import.meta.url),
  python: new URL('./client.py', import.meta.url),
};

export function startGrpcClient(language: ClientLanguage, xds: XdsTest, target: string): GrpcClient {
  const file = join(xds.folder, `${language}.json`);
  const bootstrap = grpcBootstrap({
    identity: { role: 'grpc', cluster, name: language },
    server: { kind: 'socket', path: xds.socket },
    ...{ zone: '', region: '', variant: 'sotw', admin: { host: '', port: 0 }, isClustersetProxied: false },
  });
  writeFileSync(file, JSON.stringify(bootstrap));
  return startWithBootstrap(language, file, target);
}

/** `within` are the words that run a program elsewhere, as in a network namespace. */
export function startWithBootstrap(
  language: ClientLanguage,
  file: string,
  target: string,
  within: readonly string[] = [],
): GrpcClient {
  const env = { ...process.env, GRPC_XDS_BOOTSTRAP: file, PYTHONPATH: pathOf('grpcio') ?? '' };
  const words = [...within, language === 'python' ? 'python3' : process.execPath, scripts[language].pathname, target];
  const child: ChildProcessWithoutNullStreams = spawn(words[0]!, words.slice(1), { env });
  let log = '';
  let last = target;
  child.stderr.on('data', (chunk) => (log += chunk));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    calls: async (count, { waits = true, target: other = '', lanes = 1 } = {}) => {
      if (other !== '') last = other;
      child.stdin.write(`${count}${waits ? '' : '!'} ${last} ${lanes}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error(`the ${language} client ended: ${log}`);
      return JSON.parse(value) as Record<string, number>;
    },
    stop: () => child.kill('SIGKILL'),
  };
}

export interface Backend {
  readonly port: number;
  stop(): void;
}

/** On an address of the loopback of its own. */
export async function startBackend(name: string, address: string, port = 0): Promise<Backend> {
  const server = new grpc.Server();
  const same = (bytes: Buffer) => bytes;
  const method = { path: '/test.Who/Am', requestStream: false, responseStream: false };
  const codec = {
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  };
  server.addService({ am: { ...method, ...codec } }, {
    am: (_call: unknown, done: (error: null, reply: Buffer) => void) => done(null, Buffer.from(name)),
  } as never);
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`${address}:${port}`, grpc.ServerCredentials.createInsecure(), (error, found) =>
      error === null ? resolve(found) : reject(error),
    );
  });
  return { port: bound, stop: () => server.forceShutdown() };
}
