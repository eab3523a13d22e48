import { registerHooks } from "node:module";

/**
 * Loads modules without zod's translations. Its index loads sixty languages, a module each, which takes longer than the
 * rest of it, and only English is used here. The hook slows down other imports, so it exists only while these modules
 * load.
 */
export async function withoutLanguages<T>(load: () => Promise<T>): Promise<T> {
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      specifier === "../locales/index.js" && context.parentURL?.includes("/zod/v4/") === true
        ? { url: "data:text/javascript,", format: "module", shortCircuit: true }
        : next(specifier, context),
  });
  try {
    return await load();
  } finally {
    hooks.deregister();
  }
}
