import { defineConfig } from "vite";

// The page is served by trnscope itself, maybe under a path: every address is relative.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/trnscope/server/static",
    emptyOutDir: true,
    modulePreload: { polyfill: false },
    // The page's content security policy allows no data: scripts or styles.
    assetsInlineLimit: 0,
  },
});
