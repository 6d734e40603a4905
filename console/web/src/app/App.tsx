import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { RouterProvider } from 'react-router/dom';
import { config, loadConfig } from '../api/config';
import { ApiError } from '../api/http';
import { loginPath, session } from '../api/session';
import { Failure } from '../ui/Failure';
import { Loading } from '../ui/Loading';
import { loadExtensions } from './extensions';
import { isPublic, router } from './routes';

const client = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (count, error) => count < 3 && !(error instanceof ApiError && error.status >= 400 && error.status < 500),
      refetchOnWindowFocus: false,
    },
  },
});

/** App logs the user in and shows the console. */
export function App() {
  const [ready, setReady] = useState(false);
  const [error, setError] = useState<Error>();
  useEffect(() => {
    // Ignore errors, because the console also works without its configuration.
    const configured = loadConfig()
      .catch(() => undefined)
      .then(() => loadExtensions(config.get()));
    const active = isPublic(location.pathname) ? Promise.resolve(true) : session.load();
    active.then((isActive) => {
      if (isActive) {
        void configured.then(() => setReady(true));
      } else {
        location.assign(loginPath(location.pathname + location.search));
      }
    }, setError);
  }, []);
  if (error) {
    return <Failure error={error} />;
  }
  return (
    <QueryClientProvider client={client}>{ready ? <RouterProvider router={router} /> : <Loading />}</QueryClientProvider>
  );
}
