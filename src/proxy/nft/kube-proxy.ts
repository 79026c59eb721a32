// Whether something else on this node carries Services: kube-proxy leaves its rules when it stops. Pure.

interface Listed {
  readonly family?: string;
  readonly table?: string;
  readonly name?: string;
}

/** From the JSON of the whole ruleset; undefined if there is nothing of it. */
export function kubeProxyIn(json: string): string | undefined {
  const { nftables = [] } = JSON.parse(json) as { nftables?: readonly Readonly<Record<string, Listed>>[] };
  for (const { table, chain } of nftables) {
    if (table?.name === 'kube-proxy') return `table ${table.family} kube-proxy`;
    if (chain?.name === 'KUBE-SERVICES') return `chain KUBE-SERVICES in table ${chain.family} ${chain.table}`;
  }
  return undefined;
}
