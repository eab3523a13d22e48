import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A certificate and its key, as PEM texts, and the files that hold them. */
export interface Pair {
  readonly cert: string;
  readonly key: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** Makes an authority that nobody else knows, in a folder, with the openssl command. */
export function newAuthority(folder: string, name: string): Pair {
  const { certFile, keyFile } = filesOf(folder, name);
  openssl("req", "-x509", ...newKey(keyFile), "-subj", `/CN=${name}`, "-days", "2", "-out", certFile);
  return pairIn(folder, name);
}

/** Makes a certificate for 127.0.0.1 and localhost, or for a client, that an authority has signed. */
export function newCertificate(folder: string, name: string, authority: Pair): Pair {
  const { certFile, keyFile } = filesOf(folder, name);
  const requestFile = join(folder, `${name}.csr`);
  const extensions = join(folder, `${name}.ext`);
  writeFileSync(extensions, "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
  openssl("req", ...newKey(keyFile), "-subj", `/CN=${name}`, "-out", requestFile);
  const by = ["-CA", authority.certFile, "-CAkey", authority.keyFile, "-CAcreateserial"];
  openssl("x509", "-req", "-in", requestFile, ...by, "-days", "2", "-extfile", extensions, "-out", certFile);
  return pairIn(folder, name);
}

function newKey(file: string): string[] {
  return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", file];
}

function filesOf(folder: string, name: string) {
  return { certFile: join(folder, `${name}.pem`), keyFile: join(folder, `${name}.key`) };
}

function pairIn(folder: string, name: string): Pair {
  const files = filesOf(folder, name);
  return { ...files, cert: readFileSync(files.certFile, "utf8"), key: readFileSync(files.keyFile, "utf8") };
}

function openssl(...args: string[]): void {
  execFileSync("openssl", args, { stdio: ["ignore", "ignore", "pipe"] });
}
