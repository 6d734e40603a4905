import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { Message } from './Message';

afterEach(cleanup);

it('shows the text and the links of a message', () => {
  const { container } = render(<Message html='Upgrade to <a href="https://example.com/pro" onclick="alert(1)">Pro</a> for more.' />);
  expect(container.textContent).toBe('Upgrade to Pro for more.');
  const link = screen.getByRole('link', { name: 'Pro' });
  expect([link.getAttribute('href'), link.getAttribute('onclick')]).toEqual(['https://example.com/pro', null]);
});

it('omits scripts', () => {
  const { container } = render(<Message html='<img src="x" onerror="alert(1)">Ask <b>us</b> <a href="javascript:alert(1)">here</a>.<script>alert(1)</script>' />);
  expect(container.textContent).toBe('Ask us here.');
  expect(container.querySelector('img, a, script')).toBeNull();
});
