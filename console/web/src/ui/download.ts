/** download saves a text as a file. */
export function download(name: string, content: string): void {
  saveFile(name, new Blob([content], { type: 'text/plain' }));
}

/** saveFile saves content as a file. */
export function saveFile(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}
