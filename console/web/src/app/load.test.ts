import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LoadError, persistent, rememberBrokenSheets } from './load';

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  document.head.replaceChildren();
});

it('repeats the load of a module', async () => {
  const load = vi.fn().mockRejectedValueOnce(new TypeError('Failed to fetch')).mockResolvedValue('module');
  const result = persistent(load)();
  await vi.runAllTimersAsync();
  expect(await result).toBe('module');
});

it('reports a module that cannot be loaded', async () => {
  const result = persistent(() => Promise.reject(new TypeError('Failed to fetch')))();
  const check = expect(result).rejects.toBeInstanceOf(LoadError);
  await vi.runAllTimersAsync();
  await check;
});

it('requests a broken style sheet again before it shows the module', async () => {
  rememberBrokenSheets();
  const link = document.createElement('link');
  link.rel = 'stylesheet';
  link.href = 'https://console.example.com/page.css';
  document.head.append(link);
  // The module loader rejects the first load. On the second load, it does not load the style sheet.
  const load = vi.fn().mockImplementationOnce(() => {
    link.dispatchEvent(new Event('error'));
    return Promise.reject(new Error('Unable to preload CSS'));
  });
  let shown = false;
  const result = persistent(load)().then(() => (shown = true));
  for (const event of ['error', 'load']) {
    await vi.runAllTimersAsync();
    expect(shown).toBe(false);
    const links = document.querySelectorAll('link');
    expect(links).toHaveLength(1);
    expect(links[0]?.href).toBe(link.href);
    links[0]?.dispatchEvent(new Event(event));
  }
  await vi.runAllTimersAsync();
  await result;
  expect(load).toHaveBeenCalledTimes(2);
});
