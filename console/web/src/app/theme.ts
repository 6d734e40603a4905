import { Store } from '../api/store';

/** Theme is the theme that the user has chosen. system means the browser's theme. */
export type Theme = 'system' | 'light' | 'dark';

const key = 'theme';
const preference = window.matchMedia('(prefers-color-scheme: dark)');

function stored(): Theme {
  const value = localStorage.getItem(key);
  return value === 'light' || value === 'dark' ? value : 'system';
}

export const theme = new Store<Theme>(stored());

/** isDark reports whether the page is dark. */
export function isDark(): boolean {
  return theme.get() === 'dark' || (theme.get() === 'system' && preference.matches);
}

/** darkClass is the page's class in the dark theme. */
export const darkClass = 'pf-v6-theme-dark';

/** applyTheme sets the page's theme now and after each change. */
export function applyTheme(): void {
  const apply = () => document.documentElement.classList.toggle(darkClass, isDark());
  apply();
  preference.addEventListener('change', apply);
  theme.subscribe(() => {
    localStorage.setItem(key, theme.get());
    apply();
  });
}
