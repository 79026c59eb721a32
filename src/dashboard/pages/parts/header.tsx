// On top of every view: which clusterset, how current the page is, how many homes answered, and who looks at it.

import { useState } from 'react';
import { useConnection, useHello, useLive, useNowMs, useRows } from '../data/hooks.ts';
import { clockTime } from './format.ts';
import { HealthBadge } from './health.tsx';
import { Search } from './search.tsx';

export function Header() {
  const hello = useHello();
  const live = useLive();
  return (
    <header>
      <a className="brand" href="/">
        <img src="/icon.svg" alt="" width="24" height="24" />
        Portolan
      </a>
      {hello?.clusterset ? <span className="set">clusterset {hello.clusterset}</span> : null}
      <Freshness />
      <span className="spacer" />
      <Search />
      {hello?.bearer ? (
        <span className="bearer" title={hello.bearer}>
          {hello.bearer.replaceAll('system:serviceaccount:', '')}
        </span>
      ) : null}
      <ThemeButton />
      <button type="button" className="quiet" onClick={() => live.signOut()}>
        Sign out
      </button>
    </header>
  );
}

function Freshness() {
  const live = useLive();
  const connection = useConnection();
  const homes = useRows('homes');
  useNowMs();
  const answered = homes.filter(({ state }) => state === 'live' || state === 'behind').length;
  const { health, word } = freshness(connection.kind, answered, homes.length);
  return (
    <span className="freshness">
      <HealthBadge health={health} text={word} />
      <span className="as-of">
        {live.asOfMs > 0 ? `as of ${clockTime(live.asOfMs)}` : 'nothing read yet'}
        {homes.length > 0 ? `, ${answered} of ${homes.length} homes answered` : ''}
      </span>
    </span>
  );
}

function freshness(kind: string, answered: number, total: number) {
  if (kind === 'connecting') return { health: 'unknown', word: 'connecting' } as const;
  if (kind === 'paused') return { health: 'stale', word: 'paused' } as const;
  if (kind !== 'live') return { health: 'failed', word: 'lost' } as const;
  if (answered === 0) return { health: 'failed', word: 'lost' } as const;
  return answered < total
    ? ({ health: 'conflict', word: 'partial' } as const)
    : ({ health: 'ok', word: 'live' } as const);
}

const themes = ['auto', 'light', 'dark'] as const;
const themeKey = 'portolan-theme';

function ThemeButton() {
  const [theme, setTheme] = useState(() => localStorage.getItem(themeKey) ?? 'auto');
  document.documentElement.dataset['theme'] = theme;
  const next = themes[(themes.indexOf(theme as 'auto') + 1) % themes.length] ?? 'auto';
  return (
    <button
      type="button"
      className="quiet"
      onClick={() => {
        localStorage.setItem(themeKey, next);
        setTheme(next);
      }}
    >
      Theme: {theme}
    </button>
  );
}
