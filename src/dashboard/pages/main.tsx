// Starts the page: reads the token of this tab, opens the stream, shows the views.

import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';
import { Live, LiveContext } from './data/live.ts';
import './styles/design.css';
import './styles/base.css';
import './styles/parts.css';
import './styles/views.css';
import './styles/overview.css';

const live = new Live();
live.start();
const root = document.getElementById('root');
if (root !== null)
  createRoot(root).render(
    <LiveContext value={live}>
      <App />
    </LiveContext>,
  );
