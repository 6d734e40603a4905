/** inPlace puts a menu beside its button, so that it belongs to the same landmark, and within the window. */
export const inPlace = { appendTo: 'inline' as const, preventOverflow: true };

/** inMain puts a menu into the main part of the page, where no table hides a part of it. */
export const inMain = { appendTo: () => document.querySelector<HTMLElement>('main') ?? document.body, preventOverflow: true };
