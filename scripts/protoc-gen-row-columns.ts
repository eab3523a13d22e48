#!/usr/bin/env node
// The columns of every row message, with their protobuf types, as plain data: what a command needs to know of a table
// before it speaks protobuf, whose descriptors take longer to load than most commands to run. Called by buf generate.
import { ScalarType } from "@bufbuild/protobuf";
import { createEcmaScriptPlugin, runNodeJs } from "@bufbuild/protoplugin";

const rowsFile = "example/history/v1/rows";

runNodeJs(
  createEcmaScriptPlugin({
    name: "protoc-gen-row-columns",
    version: "v1",
    generateTs(schema) {
      for (const file of schema.files.filter(({ name }) => name === rowsFile)) {
        const generated = schema.generateFile(`${file.name}_columns.ts`);
        generated.preamble(file);
        generated.print(
          "/** Of each row message, its fields in the order of the canonical line, with their scalar types. */",
        );
        generated.print("export const rowColumns = {");
        for (const message of file.messages) {
          generated.print(`  ${message.name}: {`);
          for (const field of message.fields) {
            if (field.fieldKind !== "scalar")
              throw new Error(`${message.name}.${field.name} is not a scalar`);
            generated.print(`    ${field.name}: "${ScalarType[field.scalar].toLowerCase()}",`);
          }
          generated.print("  },");
        }
        generated.print("} as const;");
      }
    },
  }),
);
