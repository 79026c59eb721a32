// Links to the views, with the number of problems at the first.

import { Link, useRoute } from 'wouter';
import { useRows } from '../data/hooks.ts';
import { views } from './views.ts';

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
