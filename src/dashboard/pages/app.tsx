// The page: the header with how current it is, the views, and signing in.

import { lazy, Suspense } from 'react';
import { Route, Switch } from 'wouter';
import { useConnection, useRows } from './data/hooks.ts';
import { Announcer } from './parts/announcer.tsx';
import { Banners } from './parts/banners.tsx';
import { Header } from './parts/header.tsx';
import { Navigation } from './parts/navigation.tsx';
import { SignIn } from './parts/sign-in.tsx';
import { AskView } from './views/ask.tsx';
import { ClustersView } from './views/clusters.tsx';
import { ExternalView } from './views/external.tsx';
import { MatrixView } from './views/matrix.tsx';
import { NowView } from './views/now.tsx';
import { PeersView } from './views/peers.tsx';
import { ServiceView } from './views/service.tsx';
import { ServicesView } from './views/services.tsx';
import { TimelineView } from './views/timeline.tsx';
import { WhatIfView } from './views/what-if.tsx';

// Large, and not what somebody in trouble needs first.
const MapView = lazy(() => import('./views/map.tsx').then(({ MapView: view }) => ({ default: view })));
const PlotsView = lazy(() => import('./views/plots.tsx').then(({ PlotsView: view }) => ({ default: view })));

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
              <Route path="/services/:namespace/:name" component={ServiceView} />
              <Route path="/timeline" component={TimelineView} />
              <Route path="/ask" component={AskView} />
              <Route path="/clusters" component={ClustersView} />
              <Route path="/map" component={MapView} />
              <Route path="/matrix" component={MatrixView} />
              <Route path="/peers" component={PeersView} />
              <Route path="/external" component={ExternalView} />
              <Route path="/what-if" component={WhatIfView} />
              <Route path="/plots" component={PlotsView} />
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
