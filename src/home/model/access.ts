// Authentication and authorization, which the request path calls first.

import type { HttpRequest } from '../../base/http.ts';

export interface User {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export interface ClientSubject {
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** When the certificate ends; the edge refuses requests from then on. */
  readonly endsMs?: number;
}

/** How a credential can end although no right changes. */
export interface Credential {
  /** Wall time. */
  readonly endsMs?: number;
  /** Store keys of the objects with which it ends. */
  readonly boundTo?: readonly string[];
}

/** A request as its edge took it in. */
export interface ApiRequest extends HttpRequest {
  /** Subject of the client certificate, if the edge verified one against our client CA. */
  readonly clientCertificate?: ClientSubject;
  /** Why the client certificate that was presented counts for nothing. */
  readonly clientCertificateError?: string;
  /**
   * Fills in `body`, once. It is called only after authorisation, so that a client without the right cannot fill our
   * memory. Absent when the body is there already, or there is none.
   */
  readonly receiveBody?: () => Promise<void>;
  /** Where the edge wants to find out afterwards who asked: `authenticate` fills it. */
  readonly trail?: RequestTrail;
}

export interface RequestTrail {
  user?: User;
  /** The real user, when they impersonate another. */
  impersonator?: User;
}

/** The requested action, in the terms of RBAC. */
export interface Attributes {
  /** get, list, watch, create, update, patch, delete, deletecollection; lower-case HTTP method for paths. */
  readonly verb: string;
  /** Set for anything that is not a resource: /healthz, /metrics, /openapi/v3. The other fields are then empty. */
  readonly path?: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

export interface Decision {
  readonly isAllowed: boolean;
  readonly reason: string;
}

export interface Access {
  /** Called after anything changed that a decision depends on. Answers with how to stop that. */
  onChange?(listener: () => void): () => void;
  /** Called with the store key of each object that went and that a credential may be bound to. */
  onGone?(listener: (key: string) => void): () => void;
  /** How the credential of a request that was authenticated can end. */
  credentialOf?(request: ApiRequest): Credential;
  /** Throws StatusError Unauthorized for credentials that are wrong; anonymous when there are none. */
  authenticate(request: ApiRequest): Promise<User>;
  authorize(user: User, attributes: Attributes): Decision;
  /** Who signs the tokens of service accounts, for those who check them elsewhere. */
  readonly tokenIssuer?: TokenIssuer;
}

export interface TokenIssuer {
  readonly issuer: string;
  /** Public keys as JSON Web Keys (RFC 7517). */
  readonly keys: readonly object[];
}

/** Facts about the home's certificate authority. */
export interface AuthorityFacts {
  /** PEM of all that are trusted. */
  certificates(): string;
  /** Called when the trusted ones, or what they have issued for the server, changed. Returns how to stop listening. */
  onChanged(listener: () => void): () => void;
  /** Advice for people, if there is any. */
  warning(): string | undefined;
}
