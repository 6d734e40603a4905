import '@patternfly/react-core/dist/styles/base.css';
import './style.css';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app/App';
import { rememberBrokenSheets } from './app/load';
import { applyTheme } from './app/theme';

rememberBrokenSheets();
applyTheme();
// Reload a page that the browser has kept for its Back button, because it might show the data of a
// user who has logged out.
window.addEventListener('pageshow', ({ persisted }) => persisted && location.reload());
const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
