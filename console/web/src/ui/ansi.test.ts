import { describe, expect, it } from 'vitest';
import { parseLine } from './ansi';

describe('parseLine', () => {
  it('reads colors', () => {
    expect(parseLine('\x1b[1;31mfailed\x1b[0m: \x1b[92mgood')).toEqual([{ text: 'failed', color: 1, bold: true }, { text: ': ' }, { text: 'good', color: 2 }]);
  });

  it('removes all other sequences and controls', () => {
    const hostile = 'a\x1b]0;title\x07b\x1b[2Jc\x1b[6nd\x1b]8;;javascript:alert(1)\x1b\\e\x07\u202ef\x1bPq';
    expect(
      parseLine(hostile)
        .map((span) => span.text)
        .join(''),
    ).toBe('abcdefq');
  });

  it('shows the last text of a progress bar', () => {
    expect(parseLine('10%\r50%\r100%\r')).toEqual([{ text: '100%' }]);
  });

  it('keeps markup as text', () => {
    expect(parseLine('<img src=x onerror=alert(1)>')).toEqual([{ text: '<img src=x onerror=alert(1)>' }]);
  });
});
