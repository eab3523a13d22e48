import { readFileSync, statSync } from "node:fs";
import {
  createFileRegistry,
  type DescMessage,
  type DescMethod,
  type FileRegistry,
  fromBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { nearestName } from "../../../model/text/nearest-name.ts";

/** More than any real interface needs: a thousand messages take a few hundred kilobytes. */
const mostBytes = 16 * 1024 * 1024;

/** What is wrong, and what to do. */
export interface Wrong {
  readonly message: string;
  readonly hint: string;
}

const howToMake =
  "Make it with `buf build -o FILE.binpb`, or with `grpcurl -protoset-out FILE.binpb` if the server has reflection.";

/** Reads a FileDescriptorSet. */
export function readDescriptorSet(file: string): { readonly registry: FileRegistry } | Wrong {
  let bytes: Buffer;
  try {
    if (statSync(file).size > mostBytes) {
      return {
        message: `is larger than ${mostBytes >> 20} MiB, so it is not a descriptor set`,
        hint: howToMake,
      };
    }
    bytes = readFileSync(file);
  } catch (thrown) {
    const { code } = thrown as { code?: unknown };
    return {
      message: code === "ENOENT" ? "does not exist" : `cannot be read (${String(code)})`,
      hint: "The path is relative to the profile's folder.",
    };
  }
  try {
    const set = fromBinary(FileDescriptorSetSchema, bytes);
    if (set.file.length === 0 || set.file.some(({ name }) => name === "")) throw new Error("no files");
    return { registry: createFileRegistry(set) };
  } catch {
    // the parser's own message quotes the file's contents
    return { message: "is not a descriptor set, or lacks an imported file", hint: howToMake };
  }
}

/** A method by its full name, `package.Service.Method`; a slash may stand before the method. */
export function methodNamed(registry: FileRegistry, name: string): DescMethod | Wrong {
  const at = Math.max(name.lastIndexOf("."), name.lastIndexOf("/"));
  const service = registry.getService(name.slice(0, Math.max(0, at)));
  const method = service?.methods.find((one) => one.name === name.slice(at + 1));
  if (method !== undefined) return method;
  const names = [...registry]
    .filter((type) => type.kind === "service")
    .flatMap(({ typeName, methods }) => methods.map((one) => `${typeName}.${one.name}`));
  const near =
    nearestName(name, names) ?? names.find((one) => one.split(".").at(-1) === name.split(/[./]/).at(-1));
  return {
    message: "is not a method in the descriptors",
    hint:
      near !== undefined && near !== null
        ? `Did you mean ${near}?`
        : `The methods are ${listed(names)}; each is written package.Service.Method.`,
  };
}

/** The fields of a message, as a hint. */
export function fieldsHint(message: DescMessage, name: string): string {
  const names = message.fields.map((field) => field.name);
  const near = nearestName(name, names);
  if (near !== null) return `Did you mean ${near}?`;
  return names.length === 0
    ? `${message.typeName} has no fields.`
    : `The fields of ${message.typeName} are ${listed(names)}.`;
}

function listed(names: readonly string[]): string {
  return names.length <= 20 ? names.join(", ") : `${names.slice(0, 20).join(", ")} and others`;
}
