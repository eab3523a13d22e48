import { registerHooks } from "node:module";

/**
 * Loads modules without the languages of zod's messages. zod's index loads all of its sixty, a module each, which takes
 * longer than the rest of it; none but English is used here, and that is loaded by itself. Hooks make whatever else is
 * loaded slower, so this one is there for the modules at hand alone.
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
