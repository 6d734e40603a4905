import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import type { LooseObject } from '../../api/types';
import { images } from '../../text/images';
import { portsOf } from './sections';
import { Tags } from './Tags';

afterEach(cleanup);

const item = (image: string, created: string) => ({ image, dockerImageReference: `registry/app@${image}`, created });

it('shows the earlier images of a tag on request', () => {
  const tags = [
    { tag: 'latest', items: [item('sha256:2', '2026-02-01T00:00:00Z'), item('sha256:1', '2026-01-01T00:00:00Z')] },
    { tag: 'one', items: [item('sha256:1', '2026-01-01T00:00:00Z')] },
    { tag: 'none', items: null, conditions: [{ type: 'ImportSuccess', status: 'False', message: 'no such image' }] },
  ];
  render(<Tags stream={{ metadata: { name: 'app', namespace: 'a' }, status: { tags } } as unknown as LooseObject} />);
  const references = () => screen.queryAllByText(/^registry\/app@sha256:1/).length;
  expect(references()).toBe(1);
  expect(screen.queryByRole('button', { name: images.history('one') })).toBeNull();
  screen.getByText('no such image');
  fireEvent.click(screen.getByRole('button', { name: images.history('latest') }));
  expect(references()).toBe(2);
  fireEvent.click(screen.getByRole('button', { name: images.hideHistory('latest') }));
  expect(references()).toBe(1);
});

it('names the ports of the containers of a pod', () => {
  const pod = { spec: { containers: [{ name: 'web', ports: [{ name: 'http', containerPort: 8080 }, { containerPort: 53, protocol: 'UDP' }] }, { name: 'side' }] } };
  expect([...portsOf(pod as unknown as LooseObject)]).toEqual([['web', 'http: 8080/TCP, 53/UDP'], ['side', '']]);
});
