// What is chosen on the map, in the address: it survives a reload, and a link leads somebody else to the same.

import { useLocation, useSearch } from 'wouter';

export interface Choice {
  readonly region: string;
  readonly cluster: string;
  readonly service: string;
}

export function useChoice(): { readonly choice: Choice; readonly choose: (next: Partial<Choice>) => void } {
  const [path, navigate] = useLocation();
  const search = new URLSearchParams(useSearch());
  const at = (name: string) => search.get(name) ?? '';
  const choice = { region: at('region'), cluster: at('cluster'), service: at('service') };
  const choose = (next: Partial<Choice>) => {
    const all = { ...choice, ...next };
    const set = Object.entries(all).filter(([, value]) => value !== '');
    navigate(set.length === 0 ? path : `${path}?${new URLSearchParams(set)}`);
  };
  return { choice, choose };
}
