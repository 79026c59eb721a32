// Requests and responses as plain values. The API server is a function from one to the other; real sockets and the
// simulated network are two ways to carry them.

export interface HttpRequest {
  readonly method: string;
  /** Path and query, as on the request line. */
  readonly path: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** Aborted when the caller has gone away. */
  readonly signal?: AbortSignal;
}

export interface HttpResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** A stream ends when its iterator ends; the transport calls `return()` when the other side has gone away. */
  readonly body: Uint8Array | AsyncIterable<Uint8Array>;
  /** A stream without an end of its own, such as a watch; others are finished when the server stops. */
  readonly isEndless?: boolean;
}

/** A server's address and the credentials for it. PEM texts, not paths. */
export interface HttpAccess {
  /** `https://host:port`, without a trailing slash. */
  readonly server: string;
  /** Other addresses of the same server; the next is tried when one does not answer. */
  readonly otherServers?: readonly string[];
  /** Called before each connection: a server may come back at other addresses. Undefined if that is not known. */
  readonly currentServers?: () => Promise<readonly string[] | undefined>;
  readonly certificateAuthority?: string;
  readonly clientCertificate?: string;
  readonly clientKey?: string;
  readonly serverName?: string;
  readonly insecureSkipVerify?: boolean;
  /** Asked before each request, so that a renewed token is used at once. */
  readonly bearerToken?: () => Promise<string | undefined>;
  /** Called before each connection, for certificates that are renewed; replaces the two texts above. */
  readonly clientCertificatePair?: () => Promise<{ readonly certificate: string; readonly key: string } | undefined>;
  /** Called when the server answered 401, so that remembered credentials are asked for afresh. */
  readonly onUnauthorized?: () => void;
}

/** All addresses in one text, with commas between them, as tokens, Secrets and flags carry them. */
export function formatServers({ server, otherServers = [] }: Pick<HttpAccess, 'server' | 'otherServers'>): string {
  return [server, ...otherServers].join(',');
}

export function parseServers(text: string): Pick<HttpAccess, 'server' | 'otherServers'> {
  const [server = '', ...otherServers] = text.split(',');
  return otherServers.length === 0 ? { server } : { server, otherServers };
}

export interface HttpTransport {
  send(request: HttpRequest): Promise<HttpResponse>;
  close(): void;
}

export async function readBody(body: HttpResponse['body']): Promise<Uint8Array> {
  if (body instanceof Uint8Array) return body;
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}
