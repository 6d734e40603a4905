import { cleanup, render, screen, within } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { access } from '../../text/access';
import Rules from './Rules';

afterEach(cleanup);

it('shows what a role allows', () => {
  render(
    <Rules
      rules={[
        { verbs: ['get', 'list'], apiGroups: ['', 'apps'], resources: ['pods', 'deployments'] },
        { verbs: ['update'], apiGroups: [''], resources: ['configmaps'], resourceNames: ['menu'] },
        { verbs: ['get'], nonResourceURLs: ['/healthz'] },
      ]}
    />,
  );
  const rows = screen.getAllByRole('row').slice(1);
  const cells = rows.map((row) => within(row).getAllByRole('cell').map((cell) => cell.textContent));
  expect(cells).toEqual([
    ['get, list', 'pods, deployments', `${access.rules.core}, apps`, access.rules.all],
    ['update', 'configmaps', access.rules.core, 'menu'],
    ['get', '/healthz', '-', access.rules.all],
  ]);
});
