// Whether an address that goes into a token can be reached from other machines.

/** Of a URL, or a plain host. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || host === '::1' || host.startsWith('127.');
}
