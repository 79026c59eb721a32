// Said above every view: that the page is not current, which homes do not answer, and that the token is no longer accepted.

import { useConnection, useLive, useRows } from '../data/hooks.ts';
import { clockTime } from './format.ts';
import { SignInForm } from './sign-in.tsx';

export function Banners() {
  const live = useLive();
  const connection = useConnection();
  const homes = useRows('homes');
  const out = homes.filter(({ state }) => state === 'signed out');
  const lost = homes.filter(({ state }) => state === 'lost');
  const behind = homes.filter(({ state }) => state === 'behind');
  const isOut = connection.kind === 'signed out' || (out.length > 0 && out.length === homes.length);
  return (
    <div className="banners">
      {isOut && (
        <section className="banner banner-failed" role="alert" aria-label="Signed out">
          <p>
            <strong>Your token is no longer accepted.</strong> It has expired or was revoked. Everything below is as of{' '}
            {clockTime(live.asOfMs)} and may be wrong now.
          </p>
          <SignInForm />
        </section>
      )}
      {connection.kind === 'lost' && (
        <p className="banner banner-failed" role="alert">
          <strong>The connection to the dashboard is lost</strong> ({connection.why}). Everything below is as of{' '}
          {clockTime(live.asOfMs)}. Trying again.
        </p>
      )}
      {connection.kind === 'paused' && (
        <p className="banner banner-stale">
          Paused while the page was hidden. Everything below is as of {clockTime(live.asOfMs)}.
        </p>
      )}
      {!isOut && out.length > 0 && (
        <p className="banner banner-stale">
          <strong>You are not signed in at {out.map(({ name }) => name).join(', ')}.</strong>{' '}
          {[...new Set(out.map(({ why }) => why))].join('; ')}. What they hold is not shown.
        </p>
      )}
      {lost.map(({ name, why, asOfMs }) => (
        <p key={name} className="banner banner-failed" role="alert">
          <strong>The home of {name} does not answer</strong> ({why}). What it holds is shown as of{' '}
          {asOfMs === 0 ? 'never' : clockTime(asOfMs)}.
        </p>
      ))}
      {behind.map(({ name, why }) => (
        <p key={name} className="banner banner-stale">
          <strong>{name}</strong> answers, but not everything can be read: {why}
        </p>
      ))}
    </div>
  );
}
