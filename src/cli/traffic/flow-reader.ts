// Reads the flows of all node proxies of one home, and those of Envoys from its xDS servers, page by page: each reading brings what has come since the one before.

import type { Client } from '../../kube/client/client.ts';
import { PartAdmin } from '../../kube/client/part-admin.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import type { Flow, FlowFilter, FlowLosses, FlowPage } from '../../proxy/flows/flow.ts';
import { everyPart } from '../every-part.ts';

export interface ObservedFlow extends Flow {
  /** The cluster of the client. */
  readonly from: string;
  readonly node: string;
  /** The same for all that is told of one connection. */
  readonly uid: string;
}

export interface LossesOfNode extends FlowLosses {
  readonly node: string;
  /** Entries that the proxy had no room for between two readings. */
  readonly forgotten: number;
}

export interface FlowReaderOptions {
  /** Nodes of this cluster alone. */
  readonly from?: string;
  readonly filter: FlowFilter;
}

const answerMsMax = 3_000;
const ticketsMs = 300_000;
/** A proxy that records faster than this is told of in the next reading. */
const pagesMax = 10;

export class FlowReader {
  readonly #client: Client;
  readonly #options: FlowReaderOptions;
  /** By the name of the Lease: a proxy that was restarted has another holder and begins anew. */
  readonly #next = new Map<string, { readonly holder: string; readonly after: number }>();
  readonly #losses = new Map<string, LossesOfNode>();
  /** Tickets are good for ten minutes. */
  #admin: { readonly madeMs: number; readonly part: PartAdmin } | undefined;

  constructor(client: Client, options: FlowReaderOptions) {
    this.#client = client;
    this.#options = options;
  }

  close(): void {
    this.#client.close();
  }

  losses(): LossesOfNode[] {
    return [...this.#losses.values()];
  }

  async read(nowMs: number): Promise<{ readonly flows: ObservedFlow[]; readonly problems: string[] }> {
    if (this.#admin === undefined || nowMs - this.#admin.madeMs > ticketsMs)
      this.#admin = { madeMs: nowMs, part: new PartAdmin(this.#client) };
    const admin = this.#admin.part;
    const problems: string[] = [];
    const read = (part: 'proxy' | 'xds') =>
      everyPart(this.#client, { part, nowMs }, async (lease, name) => {
        const pages = await this.#pagesOf(lease, (path) =>
          admin.ask<FlowPage>(lease, path, { timeoutMs: answerMsMax }),
        );
        for (const { problem } of pages) if (problem !== '') problems.push(`${name}: ${problem}`);
        return pages;
      });
    const [proxies, servers] = await Promise.all([read('proxy'), read('xds')]);
    const { idle } = proxies;
    const unasked = [...proxies.unasked, ...servers.unasked];
    const flows = [...proxies.answers, ...servers.answers]
      .filter(({ from }) => this.#options.from === undefined || from === this.#options.from)
      .flatMap(({ from, node, flows }) =>
        flows.map((flow) => ({ from, node, ...flow, uid: uidOf(flow, { from, node }) })),
      );
    return { flows, problems: [...problems, ...unasked, ...(idle === '' ? [] : [idle])] };
  }

  async #pagesOf(lease: Lease, ask: (path: string) => Promise<FlowPage>): Promise<FlowPage[]> {
    const { name } = lease.metadata;
    const holder = lease.spec?.holderIdentity ?? '';
    const known = this.#next.get(name);
    let after = known?.holder === holder ? known.after : undefined;
    const pages: FlowPage[] = [];
    let forgotten = this.#losses.get(name)?.forgotten ?? 0;
    for (let count = 0; count < pagesMax; count += 1) {
      const query = new URLSearchParams(after === undefined ? {} : { after: String(after) });
      for (const [key, value] of Object.entries(this.#options.filter)) if (value !== undefined) query.set(key, value);
      const page = await ask(`/flows?${query}`);
      pages.push(page);
      forgotten += page.forgotten;
      after = page.next;
      this.#next.set(name, { holder, after });
      this.#losses.set(name, { ...page.losses, node: page.node, forgotten });
      if (!page.hasMore) break;
    }
    return pages;
  }
}

/** A proxy and an xDS server of one machine count for themselves. */
function uidOf({ id, seenBy }: Flow, { from, node }: { readonly from: string; readonly node: string }): string {
  return `${from}/${node}/${seenBy ?? 'kernel'}/${id}`;
}
