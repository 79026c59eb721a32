// Objects that run on the nodes. Programs in them are run by the Node of Portolan's own image.

import { portolanImage } from './images.ts';

const port = 8080;

/** Answers with its Pod's name; goes on for some seconds once it is told to end, as a server that drains does. */
const serving = `
const server = require('node:http').createServer((_, response) => response.end(process.env.HOSTNAME));
server.listen(${port});
process.on('SIGTERM', () => setTimeout(() => process.exit(0), 5000));
`;

/** Prints how many of so many requests failed, and the slowest. Every request resolves the name and connects anew. */
export const countingClient = (total: number): string => `
const url = 'http://checkout.shop.svc.clusterset.local/';
const ask = () => new Promise((resolve) => {
  const started = performance.now();
  const done = (why) => resolve({ why, ms: performance.now() - started });
  const request = require('node:http').get(url, { agent: false, timeout: 10000 }, (response) => {
    response.resume().on('end', () => done(response.statusCode === 200 ? '' : String(response.statusCode)));
  });
  request.on('timeout', () => request.destroy(new Error('timeout'))).on('error', (error) => done(error.code || error.message));
});
(async () => {
  const whys = {};
  let slowest = 0;
  let failed = 0;
  for (let count = 0; count < ${total}; count += 1) {
    const { why, ms } = await ask();
    slowest = Math.max(slowest, ms);
    if (why !== '') { failed += 1; whys[why] = (whys[why] || 0) + 1; }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  console.log(JSON.stringify({ requests: ${total}, failed, whys, slowestMs: Math.round(slowest) }));
})();
`;

function container(name: string, script: string, more: object = {}): object {
  return { name, image: portolanImage, command: ['/usr/bin/node', '-e', script], ...more };
}

/** A Service with two Pods. */
export function backend(name: string, namespace: string): object[] {
  const labels = { app: name };
  const probe = { tcpSocket: { port }, periodSeconds: 1 };
  const metadata = { name, namespace };
  const spec = {
    terminationGracePeriodSeconds: 10,
    containers: [container('main', serving, { readinessProbe: probe })],
  };
  return [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: { replicas: 2, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { selector: labels, ports: [{ name: 'http', port: 80, targetPort: port }] },
    },
  ];
}

export function client(namespace: string): object {
  const spec = { containers: [container('main', 'setInterval(() => {}, 60000)')] };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'client', namespace }, spec };
}

/** The address that kubelets give to Pods as their name server: Portolan's resolver, which answers for the cluster too. */
export function nameService(clusterIP: string): object[] {
  const metadata = { name: 'cluster-names', namespace: 'portolan-system' };
  const ports = [
    { name: 'dns', protocol: 'UDP', port: 53, targetPort: 'dns' },
    { name: 'dns-tcp', protocol: 'TCP', port: 53, targetPort: 'dns-tcp' },
  ];
  const selector = { 'app.kubernetes.io/component': 'dns' };
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'portolan-system' } },
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { clusterIP, selector, ports } },
  ];
}
