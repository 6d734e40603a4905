import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import type { LooseObject } from '../../api/types';
import { text } from '../../text/en';
import { WithContainer } from './WithContainer';

afterEach(cleanup);

const pod = (containers: string[], running: string[]) =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', uid: 'p', resourceVersion: '1', creationTimestamp: '2030-01-01T00:00:00Z' },
    spec: { containers: containers.map((name) => ({ name })) },
    status: { containerStatuses: running.map((name) => ({ name, state: { running: {} } })) },
  }) as unknown as LooseObject;

test('the user selects one of several containers', () => {
  render(<WithContainer object={pod(['web', 'proxy'], ['web'])}>{(container) => <p>{`content of ${container}`}</p>}</WithContainer>);
  screen.getByText('content of web');
  fireEvent.change(screen.getByLabelText(text.pod.container), { target: { value: 'proxy' } });
  screen.getByText(text.terminal.notRunning);
  expect(screen.queryByText(/content of/)).toBeNull();
});

test('a pod with one container has no selection', () => {
  render(<WithContainer object={pod(['web'], ['web'])}>{(container) => <p>{`content of ${container}`}</p>}</WithContainer>);
  screen.getByText('content of web');
  expect(screen.queryByLabelText(text.pod.container)).toBeNull();
});
