/** download saves text as a file on the user's machine. */
export function download(name: string, content: string): void {
  saveFile(name, new Blob([content], { type: 'text/plain' }));
}

/**
 * addressLifetime is the time in milliseconds after which a file's address is revoked. The address
 * cannot be revoked earlier, because browsers read the content after the click has ended.
 */
const addressLifetime = 60_000;

/** saveFile saves content as a file on the user's machine. */
export function saveFile(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), addressLifetime);
}
