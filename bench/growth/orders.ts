// Messages between the benchmark and its processes of light agents.

export type Order =
  | {
      readonly kind: 'start';
      readonly ids: readonly string[];
      readonly clusterset: string;
      readonly server: string;
      readonly certificateAuthority: string;
      /** By cluster id. */
      readonly tokens: Readonly<Record<string, string>>;
    }
  /** Change 0 creates the records of a service; a later one changes its endpoint. */
  | { readonly kind: 'publish'; readonly id: string; readonly index: number; readonly change: number }
  | { readonly kind: 'received' };

export type Reply =
  | { readonly kind: 'published'; readonly id: string; readonly index: number }
  | { readonly kind: 'failed'; readonly error: string }
  /** The change has reached all agents of the process. */
  | { readonly kind: 'arrived'; readonly change: number; readonly atNs: string }
  | { readonly kind: 'received'; readonly bytes: number; readonly events: number };
