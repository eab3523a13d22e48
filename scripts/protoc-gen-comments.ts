#!/usr/bin/env node
// The proto files' comments on messages and fields, as plain data, for REST's OpenAPI document: descriptors have no
// comments at run time. Called by buf generate.
import { createEcmaScriptPlugin, getComments, runNodeJs } from "@bufbuild/protoplugin";

const oneLine = (text: string | undefined) => (text ?? "").trim().replace(/\s+/g, " ");

runNodeJs(
  createEcmaScriptPlugin({
    name: "protoc-gen-comments",
    version: "v1",
    generateTs(schema) {
      for (const file of schema.files) {
        const generated = schema.generateFile(`${file.name}_comments.ts`);
        generated.preamble(file);
        generated.print("/** By the full name of a message, or of a field. */");
        generated.print("export const comments: Readonly<Record<string, string>> = {");
        for (const message of file.messages) {
          const named = [message, ...message.fields].map((desc) => {
            const name = desc.kind === "field" ? `${message.typeName}.${desc.name}` : desc.typeName;
            return [name, oneLine(getComments(desc).leading)] as const;
          });
          for (const [name, text] of named) {
            if (text !== "") generated.print(`  ${JSON.stringify(name)}: ${JSON.stringify(text)},`);
          }
        }
        generated.print("};");
      }
    },
  }),
);
