/** encode encodes a text in base64. */
export function encode(text: string): string {
  return btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''));
}

/** decode decodes base64. If the decoded value is not text, decode returns the encoded value. */
export const decode = (value: string): string => decodeText(value) ?? value;

/** decodeText decodes base64. It returns undefined if the decoded value is not text. */
export function decodeText(value: string): string | undefined {
  try {
    const bytes = Uint8Array.from(atob(value), (character) => character.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
