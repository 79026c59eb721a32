// The views, in the order in which somebody in trouble needs them.

import { Link, useRoute } from 'wouter';
import { useRows } from '../data/hooks.ts';

const views = [
  ['/', 'Overview'],
  ['/timeline', 'Timeline'],
  ['/services', 'Services'],
  ['/ask', 'Ask a name'],
  ['/clusters', 'Clusters'],
  ['/matrix', 'Matrix'],
  ['/peers', 'Peers'],
  ['/external', 'External'],
  ['/what-if', 'What if'],
  ['/plots', 'Plots'],
] as const;

export function Navigation() {
  const problems = useRows('problems').length;
  return (
    <nav aria-label="Views">
      <ul>
        {views.map(([path, name]) => (
          <li key={path}>
            <Item path={path} name={name} badge={path === '/' ? problems : 0} />
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Item({ path, name, badge }: { readonly path: string; readonly name: string; readonly badge: number }) {
  const [isExact] = useRoute(path);
  const [isBelow] = useRoute(`${path}/*`);
  const isHere = isExact || (path !== '/' && isBelow);
  return (
    <Link href={path} aria-current={isHere ? 'page' : undefined}>
      {name}
      {badge > 0 && <span className="count">{badge}</span>}
    </Link>
  );
}
