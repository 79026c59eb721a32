// A box for wide tables, which scrolls instead of the page and can be reached by keyboard.

import type { ReactNode } from 'react';

export function Scroll({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard.
    <section className="scroll" tabIndex={0} aria-label={label}>
      {children}
    </section>
  );
}
