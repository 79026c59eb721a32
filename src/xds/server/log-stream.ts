// One stream of one Envoy's access log. Its first message says who it is; nothing is ever answered.

import type { CallHandlers, ServerCall } from '../../base/grpc/server-options.ts';
import { codes } from '../../base/grpc/status.ts';
import { MalformedError } from '../../base/protobuf/wire-reader.ts';
import { type LogIdentifier, readLogMessage } from '../access-logs/entries.ts';
import type { EntrySource, EnvoyFlows } from '../access-logs/envoy-flows.ts';
import { admitNode, type ProxyCaller } from '../identity/proxy-identity.ts';

export const logMethod = '/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs';

export class LogStream implements CallHandlers {
  readonly #call: ServerCall<ProxyCaller>;
  readonly #flows: EnvoyFlows;
  readonly #cluster: string;
  #source: EntrySource | undefined;
  #isEnded = false;

  constructor(call: ServerCall<ProxyCaller>, { flows, cluster }: { flows: EnvoyFlows; cluster: string }) {
    this.#call = call;
    this.#flows = flows;
    this.#cluster = cluster;
  }

  onMessage(message: Buffer): void {
    if (this.#isEnded) return;
    try {
      const { identifier, entries } = readLogMessage(message);
      this.#source ??= this.#admit(identifier);
      if (this.#source !== undefined) this.#flows.take(entries, this.#source);
    } catch (error) {
      if (!(error instanceof MalformedError)) throw error;
      this.#end(codes.invalidArgument, `the access log cannot be read: ${error.message}`);
    }
  }

  onDrain(): void {}

  onClosed(): void {
    this.#isEnded = true;
  }

  #admit({ nodeId, logName }: LogIdentifier = { nodeId: '', logName: '' }): EntrySource | undefined {
    const admitted = admitNode(nodeId, this.#call.caller, this.#cluster);
    if (!('reason' in admitted)) return { node: admitted.identity.name, cluster: admitted.identity.cluster, logName };
    this.#end(codes.permissionDenied, admitted.reason);
    return undefined;
  }

  #end(code: (typeof codes)[keyof typeof codes], reason: string): void {
    this.#isEnded = true;
    this.#call.end(code, reason);
  }
}
