import { defineConfig } from 'vite';

export default defineConfig({
  define: { 'process.env.NODE_ENV': '"production"', global: 'globalThis' },
  build: { chunkSizeWarningLimit: 1e5, minify: false, target: 'es2022' },
});
