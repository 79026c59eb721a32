// Whether an address that goes into a token can be reached from other machines.

import { isIPv4 } from 'node:net';
import { usageError } from './exit-codes.ts';
import type { CliDeps } from './with-home.ts';

/** Takes the host of a URL, or a plain one. A DNS name that begins with 127. is none. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || host === '::1' || (host.startsWith('127.') && isIPv4(host));
}

/** On standard error: the output is the token or the kubeconfig alone, for scripts. */
export function warnIfLoopback({ warn }: Pick<CliDeps, 'warn'>, server: string): void {
  if (server.split(',').some((one) => isLoopbackHost(new URL(one).hostname)))
    warn?.(
      `warning: other machines cannot reach ${server}; start the broker with portolan api --advertise HOST, or give --server URL`,
    );
}

/** The value of --server: one URL, or several with commas between them. */
export function checkedServer(text: string): string {
  const urls = text.split(',').map((url) => url.trim().replace(/\/+$/, ''));
  if (urls.every((url) => URL.canParse(url) && url.startsWith('https://'))) return urls.join(',');
  throw usageError(
    `--server ${JSON.stringify(text)}: write a URL such as https://broker.example.com:6443, or several with commas between them`,
  );
}
