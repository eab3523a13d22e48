import { Document, isCollection, isMap, isPair, isScalar, isSeq, visit } from "yaml";
import type { Profile, ProfileSecret } from "./profile.ts";
import { profileVersion } from "./profile-version.ts";
import { errorDocument, restDocument } from "./rest-document.ts";
import { rowsDocument } from "./rows-document.ts";

/** A profile as YAML, including everything that it extends. Reading it gives the same profile. */
export function profileText(profile: Profile): string {
  const { rest, tables: routes, documents } = restDocument(profile.rest);
  const { rows, tables: maps } = rowsDocument(profile);
  const tables = {
    ...Object.fromEntries(profile.described.map((name) => [name, { ...routes[name], ...maps[name] }])),
    ...Object.fromEntries(profile.none.map((name) => [name, "none"])),
  };
  const keys = secretsOf(profile.keys, { in_address: true });
  const restAll = { ...rest, ...(profile.keys.length === 0 ? {} : { keys }) };
  return yamlOf({
    profile: profileVersion,
    name: profile.name,
    ...(profile.headers.length === 0 ? {} : { headers: secretsOf(profile.headers, {}) }),
    // a profile without rpc needs rest
    ...(Object.keys(restAll).length === 0 && (profile.rest === undefined || profile.rpc === undefined)
      ? {}
      : { rest: restAll }),
    ...(Object.keys(documents).length === 0 ? {} : { documents }),
    ...(Object.keys(rows).length === 0 ? {} : { rows }),
    tables,
    ...errorDocument(profile.rest),
    ...(profile.rpc === undefined ? {} : { rpc: profile.rpc.document }),
  });
}

function secretsOf(secrets: readonly ProfileSecret[], more: object): Record<string, object> {
  return Object.fromEntries(secrets.map(({ name, from }) => [name, { ...from, ...more }]));
}

/** Small maps, and lists of single values, go on one line. */
function yamlOf(value: unknown): string {
  const document = new Document(value, { version: "1.2", schema: "core", aliasDuplicateObjects: false });
  visit(document, {
    Collection: (_, node) => {
      const items = isMap(node) ? node.items.map((pair) => pair.value) : isSeq(node) ? node.items : [];
      const isList = isSeq(node) && items.every((item) => !isCollection(item));
      if (items.length === 0 || isList || isSmall(node)) node.flow = true;
    },
  });
  return document.toString({ lineWidth: 120, flowCollectionPadding: true });
}

/** Whether a map or list fits on one line. */
function isSmall(node: unknown): boolean {
  let size = 0;
  visit(node as Parameters<typeof visit>[0], (_, inside) => {
    if (isScalar(inside)) size += String(inside.value).length + 4;
    else if (isPair(inside)) size += 1;
    else if (isCollection(inside) && inside !== node && inside.items.length > 3) size += 1000;
  });
  return size < 110;
}
