import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import type { Plugin } from 'vite';

/**
 * usedFonts contains the PatternFly fonts that the console loads. Browsers derive the italic styles
 * from the upright fonts.
 */
const usedFonts = ['RedHatTextVF.woff2', 'RedHatMonoVF.woff2'];

/**
 * smallBase removes from PatternFly's base styles the fonts, icon classes and themes that the
 * console does not use.
 */
export function smallBase(): Plugin {
  return {
    name: 'small-base',
    enforce: 'pre',
    transform(code, id) {
      if (!id.includes('/react-core/dist/styles/base')) {
        return undefined;
      }
      return code
        .replace(/@font-face\s*\{[^}]*\}/g, (face) => (usedFonts.some((font) => face.includes('/' + font)) ? face : ''))
        .replace(/:root:where\([^)]*\.pf-v6-theme-(?:high-contrast|felt|glass)[^)]*\)\s*\{[^}]*\}/g, '')
        .replace(/(?:\.pf-v6-pficon-[\w-]+:before,?\s*)+\{[^}]*\}/g, '');
    },
  };
}

/**
 * smallSearch removes the attribute menu from PatternFly's search field, together with the form
 * components that the menu imports. The console's search fields do not search by attribute.
 */
export function smallSearch(): Plugin {
  return {
    name: 'small-search',
    load: (id) => (id.endsWith('/SearchInput/AdvancedSearchMenu.js') ? 'export const AdvancedSearchMenu = () => null;' : undefined),
  };
}

/**
 * compress replaces each file with its brotli and gzip forms if compression makes the file smaller.
 */
export function compress(): Plugin {
  let dir = '';
  return {
    name: 'compress',
    apply: 'build',
    configResolved(config) {
      dir = join(config.root, config.build.outDir);
    },
    closeBundle() {
      for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
        const path = join(entry.parentPath ?? entry.path, entry.name);
        if (!entry.isFile() || ['.woff2', '.png', '.br', '.gz'].includes(extname(path))) {
          continue;
        }
        const content = readFileSync(path);
        const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
        writeFileSync(path + '.br', brotliCompressSync(content, { params }));
        writeFileSync(path + '.gz', gzipSync(content, { level: 9 }));
        rmSync(path);
      }
    },
  };
}
