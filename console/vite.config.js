// One script and one style sheet, from the package itself: the page's policy allows nothing inline and nothing from elsewhere.
import { defineConfig } from "vite";

export default defineConfig({
  base: "/console/",
  build: {
    outDir: process.env.CONSOLE_OUT ?? "../src/pactgate/console/static",
    emptyOutDir: true,
    modulePreload: false,
    assetsInlineLimit: 0,
    target: "es2023",
  },
});
