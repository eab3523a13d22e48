import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);
const openssl = (args: readonly string[]) => execute("openssl", args);

/** A certificate with its key: the texts, and the files they are in. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** An authority of one's own, made by the openssl program in a folder of the test. */
export class Authority {
  readonly #folder: string;
  readonly own: Certificate;

  private constructor(folder: string, own: Certificate) {
    this.#folder = folder;
    this.own = own;
  }

  static async create(folder: string, name: string): Promise<Authority> {
    const [certFile, keyFile] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
    const made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
    await openssl(["req", "-x509", ...made, "-subj", `/CN=${name}`, "-keyout", keyFile, "-out", certFile]);
    return new Authority(folder, await read(certFile, keyFile));
  }

  /** A certificate for a name, or for an address as `IP:127.0.0.1`. */
  async sign(name: string, alternative = `DNS:${name}`): Promise<Certificate> {
    const file = (suffix: string) => join(this.#folder, `${name}.${suffix}`);
    const made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    await openssl(["req", ...made, "-subj", `/CN=${name}`, "-keyout", file("key"), "-out", file("csr")]);
    await writeFile(file("ext"), `subjectAltName=${alternative}\n`);
    const { certFile, keyFile } = this.own;
    await openssl([
      ...["x509", "-req", "-days", "2", "-in", file("csr"), "-out", file("pem"), "-extfile", file("ext")],
      ...["-CA", certFile, "-CAkey", keyFile, "-CAcreateserial"],
    ]);
    return await read(file("pem"), file("key"));
  }
}

async function read(certFile: string, keyFile: string): Promise<Certificate> {
  const [cert, key] = await Promise.all([readFile(certFile, "utf8"), readFile(keyFile, "utf8")]);
  return { cert, key, certFile, keyFile };
}
