// The page: the header with how current it is, the views, and signing in.

import { Suspense } from 'react';
import { Route, Switch } from 'wouter';
import { useConnection, useRows } from './data/hooks.ts';
import { Announcer } from './parts/announcer.tsx';
import { Banners } from './parts/banners.tsx';
import { Header } from './parts/header.tsx';
import { Navigation } from './parts/navigation.tsx';
import { SignIn } from './parts/sign-in.tsx';
import { ClustersView } from './views/clusters.tsx';
import { NowView } from './views/now.tsx';
import { ServicesView } from './views/services.tsx';

export function App() {
  const connection = useConnection();
  const homes = useRows('homes');
  const isOld = connection.kind !== 'live' || homes.every(({ state }) => state !== 'live' && state !== 'behind');
  if (connection.kind === 'signed out' && homes.length === 0) return <SignIn why={connection.why} />;
  return (
    <>
      <a className="skip" href="#main">
        Skip to the content
      </a>
      <Header />
      <div className="frame">
        <Navigation />
        <main id="main" tabIndex={-1} className={isOld ? 'is-old' : ''} aria-busy={connection.kind === 'connecting'}>
          <Banners />
          <Suspense fallback={<p className="nothing">Loading</p>}>
            <Switch>
              <Route path="/" component={NowView} />
              <Route path="/services" component={ServicesView} />
              <Route path="/clusters" component={ClustersView} />
              <Route>
                <h1>There is no such view</h1>
              </Route>
            </Switch>
          </Suspense>
        </main>
      </div>
      <Announcer />
    </>
  );
}
