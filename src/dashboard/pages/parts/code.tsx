// A code of doctor, with a link to what it means.

import { Link } from 'wouter';

export function Code({ code }: { readonly code: string }) {
  return (
    <Link className="code" href={`/codes/${code}`}>
      <code>{code}</code>
    </Link>
  );
}
