// An address that leads nowhere: says so, and where to go instead.

import { Link, useLocation } from 'wouter';

export function LostView() {
  const [path] = useLocation();
  return (
    <>
      <h1>There is no such page</h1>
      <p>
        Nothing is at <code>{path}</code>. A service is at <code>/services/NAMESPACE/NAME</code>; Ctrl-K searches
        everything.
      </p>
      <p>
        <Link href="/">To the overview</Link>
      </p>
    </>
  );
}
