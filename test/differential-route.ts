import { methodOf } from "./differential-rpc-requests.ts";

/**
 * The route that a path is of, one name for all its places: `/instances/:id` below the base address or at the origin,
 * `Service/Method` of RPC, `none` where nobody serves it. `routes` are `METHOD url`.
 */
export function routeOf(path: string, routes: ReadonlySet<string>): string {
  const [plain] = path.split("?", 1) as [string];
  const method = methodOf(plain);
  if (method !== undefined) return `${method.parent.name}/${method.name}`;
  for (const route of routes) {
    const [, url = ""] = route.split(" ");
    if (patternOf(url).test(plain)) return url.replace(/^\/api\/v1/, "");
  }
  return "none";
}

const patterns = new Map<string, RegExp>();

function patternOf(url: string): RegExp {
  let pattern = patterns.get(url);
  if (pattern === undefined) {
    const text = url
      .replace(/[.+?^${}()|[\]\\]/g, "\\$&")
      .replace(/:\w+/g, "[^/]+")
      .replace(/\*/g, ".*");
    pattern = new RegExp(`^${text}$`);
    patterns.set(url, pattern);
  }
  return pattern;
}
