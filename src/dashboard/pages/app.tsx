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
import { CodesView } from './views/codes.tsx';
import { ExternalView } from './views/external.tsx';
import { FlowsView } from './views/flows.tsx';
import { LostView } from './views/lost.tsx';
import { MatrixView } from './views/matrix.tsx';
import { OverviewView } from './views/overview.tsx';
import { PeersView } from './views/peers.tsx';
import { ServiceView } from './views/service.tsx';
import { ServicesView } from './views/services.tsx';
import { TimelineView } from './views/timeline.tsx';
import { WhatIfView } from './views/what-if.tsx';

// Large, and not what somebody in trouble needs first.
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
              <Route path="/" component={OverviewView} />
              <Route path="/services" component={ServicesView} />
              <Route path="/services/:namespace/:name" component={ServiceView} />
              <Route path="/flows" component={FlowsView} />
              <Route path="/timeline" component={TimelineView} />
              <Route path="/ask" component={AskView} />
              <Route path="/clusters" component={ClustersView} />
              <Route path="/map" component={OverviewView} />
              <Route path="/codes" component={CodesView} />
              <Route path="/codes/:code" component={CodesView} />
              <Route path="/matrix" component={MatrixView} />
              <Route path="/peers" component={PeersView} />
              <Route path="/external" component={ExternalView} />
              <Route path="/what-if" component={WhatIfView} />
              <Route path="/plots" component={PlotsView} />
              <Route component={LostView} />
            </Switch>
          </Suspense>
        </main>
      </div>
      <Announcer />
    </>
  );
}
