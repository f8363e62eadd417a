import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

/** Builds the dashboard into `dist/page`: one script and one style sheet with hashed names, nothing inline, nothing from elsewhere. */
// biome-ignore lint/style/noDefaultExport: Vite reads it so
export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: fileURLToPath(new URL("../dist/page", import.meta.url)),
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
