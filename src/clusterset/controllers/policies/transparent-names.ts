// Which of this cluster's own names lead to the service of the clusterset, because a policy says so (`importAs: Transparent`), and
// what the condition of that policy says of those that do not.

import type { AgentContext } from '../../copies/context.ts';
import type { CountedRecord } from '../../copies/counted-records.ts';
import type { ServiceImportPolicy } from '../../kinds/service-import-policy.ts';
import { formatServiceKey, type ServiceKey } from '../../rules/names.ts';
import { transparent } from '../../rules/routing/import-as.ts';
import { isStandIn, judgeTransparency, rewriteFor } from '../../rules/routing/transparent.ts';

export interface TransparencyWish {
  readonly service: ServiceKey;
  readonly records: readonly CountedRecord[];
  readonly policy: ServiceImportPolicy | undefined;
  /** The name leads there already. */
  readonly was: boolean;
}

interface Remark {
  readonly policy: string;
  readonly isRefusal: boolean;
  readonly message: string;
}

export class TransparentNames {
  readonly #context: AgentContext;
  readonly #onRemark: (policy: string) => void;
  readonly #remarks = new Map<string, Remark>();
  readonly #wished = new Set<string>();

  constructor(context: AgentContext, onRemark: (policy: string) => void) {
    this.#context = context;
    this.#onRemark = onRemark;
  }

  isOn({ service, records, policy, was }: TransparencyWish): boolean {
    const key = formatServiceKey(service);
    if (policy?.spec?.importAs !== transparent) {
      this.forget(key);
      return false;
    }
    this.#wished.add(key);
    const { clusterId } = this.#context.membership;
    const own = this.#context.copies.services.get(key);
    const hasOwnService = own !== undefined && !isStandIn(own);
    const isExportedHere = records.some(({ cluster }) => cluster === clusterId);
    const isCarried = this.#isCarried();
    const { isOn, refusal } = judgeTransparency({ service, clusterId, hasOwnService, isExportedHere, isCarried, was });
    const need = isOn && own === undefined ? this.#need(service) : undefined;
    const message = refusal ?? need;
    const isRefusal = refusal !== undefined;
    this.#note(key, message === undefined ? undefined : { policy: policy.metadata.name, isRefusal, message });
    return isOn;
  }

  /** Its policy wants it no more, or nobody exports it. */
  forget(key: string): void {
    this.#wished.delete(key);
    this.#note(key, undefined);
  }

  /** Whether a change of the Service of that name matters. */
  isWished(key: string): boolean {
    return this.#wished.has(key);
  }

  /** Remarks on the names that this policy wants. */
  remarks(policy: string): readonly { readonly isRefusal: boolean; readonly message: string }[] {
    return [...this.#remarks.values()].filter((one) => one.policy === policy);
  }

  #isCarried(): boolean {
    const source = this.#context.clusterSetIps();
    if (source === 'none') return true;
    return (source === 'derived' ? this.#context.routesServices() : this.#context.hasProxy()) === true;
  }

  /** The agent makes the Service where it may; else this stays. */
  #need(service: ServiceKey): string | undefined {
    if (this.#context.routesServices() !== true) return undefined;
    const rewrite = rewriteFor(service, this.#context.policy().zone);
    return `${formatServiceKey(service)}: this cluster has no Service of that name; DNS servers other than portolan dns need one (agent.writeServices=true lets the agent make it), or CoreDNS the line "${rewrite}"`;
  }

  #note(key: string, remark: Remark | undefined): void {
    const before = this.#remarks.get(key);
    if (before?.message === remark?.message && before?.policy === remark?.policy) return;
    if (remark === undefined) this.#remarks.delete(key);
    else this.#remarks.set(key, remark);
    for (const one of [before, remark]) if (one !== undefined) this.#onRemark(one.policy);
  }
}
