// The roles of an unpacked image together: a broker and a home, an agent between them, and a resolver that is asked for an
// exported service.

import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createRealHost } from '../../src/base/real/host.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import { createClient } from '../../src/kube/client/client.ts';
import { findHome } from '../../src/kube/client/kubeconfig.ts';
import { namespaceType } from '../../src/kube/objects/namespace.ts';
import type { UnpackedImage } from './image.ts';

export async function answerOf(image: UnpackedImage): Promise<string> {
  for (const name of ['broker', 'east']) {
    image.start(['api', '--data', `/var/lib/portolan/${name}`, '--listen', '127.0.0.1:0']);
  }
  const config = (name: string) => `/var/lib/portolan/${name}/admin.kubeconfig`;
  for (const name of ['broker', 'east']) await untilThere(join(image.state, name, 'admin.kubeconfig'));
  const typed = async (...args: string[]) => {
    const { code, text } = await image.run(args);
    if (code !== 0) throw new Error(`portolan ${args.join(' ')} ended with ${code}\n${text}`);
    return text;
  };
  await typed('broker', 'init', '--clusterset', 'prod', '--kubeconfig', config('broker'));
  const offer = await typed('broker', 'token', 'east', '--clusterset', 'prod', '--kubeconfig', config('broker'));
  const token = offer.split(/\s+/).find((word) => word.length > 100)!;
  await typed('join', token, '--kubeconfig', config('east'));
  image.start(['agent', '--kubeconfig', config('east')]);
  const resolver = ['dns', '--cluster-id', 'east', '--listen', '127.0.0.1:0', '--kubeconfig', config('east')];
  const admin = await printedBy(image.start(resolver), /http:\/\/127\.0\.0\.1:\d+/);
  await createNamespace(join(image.state, 'east/admin.kubeconfig'), 'shop');
  const process = ['--address', '10.1.0.7', '--port', 'http=8080'];
  await typed('register', 'shop/checkout', ...process, '--kubeconfig', config('east'));
  await typed('export', 'shop/checkout', '--wait', '--kubeconfig', config('east'));
  let answer = '';
  for (let tries = 0; tries < 100 && !/ 243\.\d+\.\d+\.\d+/.test(answer); tries++) {
    answer = (await image.run(['dig', 'checkout.shop.svc.clusterset.local', '--admin', admin])).text;
  }
  return answer;
}

async function untilThere(path: string): Promise<void> {
  for (let tries = 0; tries < 6_000 && !existsSync(path); tries++) await pause(50);
  if (!existsSync(path)) throw new Error(`${path} did not appear`);
}

async function createNamespace(kubeconfig: string, name: string): Promise<void> {
  const world = createRealWorld();
  const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig });
  const client = createClient(world.network.http(access), { world, userAgent: 'test' });
  await client.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  await client.close();
}

function printedBy(child: ChildProcess, pattern: RegExp): Promise<string> {
  let text = '';
  return new Promise((resolve, reject) => {
    const read = (chunk: Buffer) => {
      text += chunk;
      const found = pattern.exec(text);
      if (found !== null) resolve(found[0]);
    };
    child.stdout!.on('data', read);
    child.stderr!.on('data', read);
    child.once('exit', () => reject(new Error(`ended without printing ${pattern}:\n${text}`)));
  });
}
