import { expect, test } from "vitest";
import { RunvaultError } from "../../../src/model/error.ts";
import { createScrubber } from "../../../src/model/text/scrubber.ts";
import { recordedError, withoutPaths } from "../../../src/pipeline/record/recorded-error.ts";

const folders = {
  archive: "/data/my archive",
  scratch: "/data/my archive's/scratch/",
  home: "/",
  none: null,
};

test.each([
  ["", ""],
  ["the file /data/my archive/runs/a/b.json is damaged", "the file archive/runs/a/b.json is damaged"],
  ["/data/my archive", "archive"],
  ["in /data/my archive.", "in archive."],
  ["'/data/my archive'", "'archive'"],
  ["/data/my archive/a and /data/my archive/b", "archive/a and archive/b"],
  ["/data/my archive's/scratch/pending", "scratch/pending"],
  ["--archive '/data/my archive' -x", "--archive 'archive' -x"],
  // another folder that begins alike
  ["'/data/my archive2/x'", "'…/x'"],
  ["ENOENT: no such file, open '/root/my certs/ca.pem'", "ENOENT: no such file, open '…/ca.pem'"],
  ["cannot read /etc/ssl/ca.pem: denied", "cannot read …/ca.pem: denied"],
  ["--tls-ca=/etc/ssl/ca.pem", "--tls-ca=…/ca.pem"],
  ["(/etc/ssl/ca.pem)", "(…/ca.pem)"],
  ["`/etc/a b/c`", "`…/c`"],
  ["file:/etc/ssl/ca.pem", "file:…/ca.pem"],
  ["at /etc/ssl/", "at …/ssl"],
  ["at /etc.", "at …/etc."],
  ["IO Error: /tmp/x/y: full", "IO Error: …/y: full"],
  // nothing of the machine
  ["http://127.0.0.1:8080/api/v1 answered 503", "http://127.0.0.1:8080/api/v1 answered 503"],
  ["https://gateway.example.com/api/v1/instances", "https://gateway.example.com/api/v1/instances"],
  ["alpha-1/2022-01-01-001 and fills / orders", "alpha-1/2022-01-01-001 and fills / orders"],
  ["which often ends in /api/v1.", "which often ends in /api/v1."],
  ["GET /history/fills answered 404", "GET /history/fills answered 404"],
  ["Europe/Berlin, 5 MB/s, 1/2", "Europe/Berlin, 5 MB/s, 1/2"],
])("%j holds no absolute path as %j", (text, expected) => {
  expect(withoutPaths(text, folders)).toBe(expected);
});

test("an error is recorded without secrets and paths", () => {
  const scrubber = createScrubber();
  scrubber.add("opensesame");
  const error = new RunvaultError("storage_forbidden", "cannot write /data/my archive/jobs with opensesame", {
    hint: "Look at /var/log/x.",
  });
  expect(recordedError(error, folders, scrubber)).toEqual({
    code: "storage_forbidden",
    message: "cannot write archive/jobs with ***",
    hint: "Look at …/x.",
    exit: 7,
  });
  expect(recordedError(new Error("boom"), folders, scrubber)).toMatchObject({
    code: "internal",
    hint: null,
    exit: 1,
  });
});

test("what comes from outside is cut, whatever it consists of, and costs no time", () => {
  for (const part of ["/", "/.", ".", "'/", "/a", "é", "file:/", "/data/my archive", "/data/my archive "]) {
    // of the processor: a busy machine makes nothing longer
    const began = process.cpuUsage();
    const { message } = recordedError(new Error(part.repeat(200_000)), folders, createScrubber());
    expect(message.length).toBeLessThan(2_010);
    const { user, system } = process.cpuUsage(began);
    expect((user + system) / 1e6).toBeLessThan(2);
  }
});
