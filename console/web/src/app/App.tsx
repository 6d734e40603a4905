import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { RouterProvider } from 'react-router/dom';
import { ApiError } from '../api/http';
import { loginPath, session } from '../api/session';
import { Failure } from '../ui/Failure';
import { Loading } from '../ui/Loading';
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
  const [ready, setReady] = useState(isPublic(location.pathname));
  const [error, setError] = useState<Error>();
  useEffect(() => {
    if (ready) {
      return;
    }
    session.load().then((active) => {
      if (active) {
        setReady(true);
      } else {
        location.assign(loginPath(location.pathname + location.search));
      }
    }, setError);
  }, [ready]);
  if (error) {
    return <Failure error={error} />;
  }
  return (
    <QueryClientProvider client={client}>{ready ? <RouterProvider router={router} /> : <Loading />}</QueryClientProvider>
  );
}
