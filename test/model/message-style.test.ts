// @module-tag slow
import { globSync, readFileSync } from "node:fs";
import { relative } from "node:path";
import ts from "typescript";
import { describe, expect, test } from "vitest";
import { inProject } from "../fixtures/command/project.ts";

/** A text of the source with `…` for each of its placeholders, and where it stands. */
interface Said {
  readonly text: string;
  readonly place: string;
}

const messages: Said[] = [];
const hints: Said[] = [];
for (const file of globSync(inProject("src/**/*.ts"))) {
  const source = ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest);
  const add = (list: Said[], node: ts.Node | undefined) => {
    for (const { text, at } of node === undefined ? [] : textsOf(node)) {
      const { line } = source.getLineAndCharacterOfPosition(at);
      list.push({ text, place: `${relative(inProject("src"), file)}:${line + 1}` });
    }
  };
  const look = (node: ts.Node): void => {
    if (
      ts.isNewExpression(node) &&
      ts.isIdentifier(node.expression) &&
      node.expression.text === "RunvaultError"
    ) {
      add(messages, node.arguments?.[1]);
    }
    const isNamed = ts.isPropertyAssignment(node) || ts.isVariableDeclaration(node);
    if (isNamed && ts.isIdentifier(node.name)) {
      if (node.name.text === "hint") add(hints, node.initializer);
      else if (/Hints$/.test(node.name.text))
        for (const value of valuesOf(node.initializer)) add(hints, value);
    }
    ts.forEachChild(node, look);
  };
  look(source);
}

/** The texts that an expression may come to; none of what is put together elsewhere. */
function textsOf(node: ts.Node): { readonly text: string; readonly at: number }[] {
  if (ts.isStringLiteralLike(node)) return [{ text: node.text, at: node.end }];
  if (ts.isTemplateExpression(node)) {
    const rest = node.templateSpans.map(({ literal }) => `…${literal.text}`);
    return [{ text: node.head.text + rest.join(""), at: node.end }];
  }
  if (ts.isConditionalExpression(node)) return [node.whenTrue, node.whenFalse].flatMap(textsOf);
  if (!ts.isBinaryExpression(node) || node.operatorToken.kind !== ts.SyntaxKind.PlusToken) return [];
  const [before, behind] = [textsOf(node.left), textsOf(node.right)];
  return before.flatMap(({ text, at }) => behind.map((next) => ({ text: text + next.text, at })));
}

function valuesOf(node: ts.Node | undefined): ts.Node[] {
  if (node === undefined || !ts.isObjectLiteralExpression(node)) return [];
  return node.properties.flatMap((property) =>
    ts.isPropertyAssignment(property) ? [property.initializer] : [],
  );
}

/** Names that are written so wherever they stand. */
const names = /^(DuckDB|JSON|Parquet|Parser Error|REST|RPC|RUNVAULT_\w+|TLS)\b/;

function offenders(said: readonly Said[], isWrong: (text: string) => boolean): string[] {
  return said.filter(({ text }) => isWrong(text)).map(({ text, place }) => `${place} ${text}`);
}

describe("what errors say", () => {
  test("is found in the source", () => {
    expect(messages.length).toBeGreaterThan(200);
    expect(hints.length).toBeGreaterThan(150);
  });

  test("begins in lower case and ends without a period", () => {
    expect(offenders(messages, (text) => /^[A-Z]/.test(text) && !names.test(text)).join("\n")).toBe("");
    expect(offenders(messages, (text) => /[.!:;,]$/.test(text) && !text.endsWith("…")).join("\n")).toBe("");
  });

  test("leads to hints that are whole sentences", () => {
    expect(offenders(hints, (text) => /^[a-z]/.test(text)).join("\n")).toBe("");
    expect(offenders(hints, (text) => !/[.?…]$/.test(text)).join("\n")).toBe("");
  });

  test("has no double blanks, no exclamation marks and no courtesies", () => {
    const odd = (text: string) => / {2}|!|\bplease\b|\bsorry\b/i.test(text);
    expect(offenders([...messages, ...hints], odd).join("\n")).toBe("");
  });
});
