import { defineConfig } from 'vitest/config';
import { compress, smallBase, smallSearch } from './build-plugins';

export default defineConfig({
  logLevel: 'warn',
  base: '/console/',
  plugins: [smallBase(), smallSearch(), compress()],
  esbuild: { jsx: 'automatic', legalComments: 'none' },
  build: {
    outDir: 'build',
    emptyOutDir: true,
    target: 'es2022',
    // The content security policy does not allow data URLs for fonts and scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1000,
    rollupOptions: {
      // Directives for React servers have no meaning in a bundle.
      onwarn: (warning, warn) => warning.code === 'MODULE_LEVEL_DIRECTIVE' || warn(warning),
    },
  },
  // A busy machine can take seconds to import a module. The timeout is only for tests that hang.
  test: { environment: 'jsdom', include: ['src/**/*.test.{ts,tsx}'], restoreMocks: true, testTimeout: 60_000, hookTimeout: 60_000 },
});
