import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { run } from "../fixtures/command/command-process.ts";
import { requires } from "../fixtures/command/requirement.ts";
import { newAuthority, newCertificate } from "../fixtures/command/tls-files.ts";
import { MailServer } from "../fixtures/tell/mail-server.ts";

test.skipIf(!requires("openssl")).each([
  ["STARTTLS", false],
  ["TLS from the start", true],
])(
  "a password goes to a mail server by %s, and to none whose certificate is not trusted",
  async (_, isSmtps) => {
    const folder = await mkdtemp(join(tmpdir(), "runvault-mail-tls-"));
    try {
      const authority = newAuthority(folder, "authority");
      const tls = newCertificate(folder, "mail", authority);
      await using server = await MailServer.open({ tls, isSmtps, auth: ["PLAIN"] });
      const file = join(folder, "nightly.yaml");
      const mail = { url_env: "MAIL_URL", from: "runvault@example.com", to: ["quant@example.com"] };
      const job = { version: 1, name: "nightly", archive: "archive", runs: {}, notify: { mail } };
      await writeFile(file, JSON.stringify({ ...job, gateway: { url: "http://127.0.0.1:1/api/v1" } }));
      const MAIL_URL = server.url("quant:5ecret@").replace("127.0.0.1", "localhost");
      const untrusted = await run(["check", file, "--test-notify"], { MAIL_URL });
      expect(untrusted.stdout).toContain("mail: failed: the certificate of the mail server is not trusted");
      expect([untrusted.status, server.mails]).toEqual([3, []]);
      const trusted = await run(["check", file, "--test-notify"], {
        MAIL_URL,
        NODE_EXTRA_CA_CERTS: authority.certFile,
      });
      expect(trusted).toEqual({ status: 0, stdout: "mail: ok\n", stderr: "" });
      expect(server.mails).toMatchObject([{ isOverTls: true, login: "quant:5ecret" }]);
      expect(server.wrong).toEqual([]);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
);
