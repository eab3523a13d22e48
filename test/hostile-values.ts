/** A few of them, for places where each costs a query of DuckDB. */
export const fewHostileTexts: readonly string[] = ["../../archive.json", "' OR 1=1 --", "\u0000"];

/** Texts that mean no good, as they are before they are put into a path, a query or a message. */
export const hostileTexts: readonly string[] = [
  // out of the folder
  "../../../../etc/passwd",
  "..",
  "/etc/passwd",
  "alpha/../../archive.json",
  "..\\..\\archive.json",
  "file:///etc/passwd",
  "runs/alpha/2022-01-01.json",
  // out of the statement
  "'; DROP TABLE fills; --",
  "' OR 1=1 --",
  "' union select content from read_text('/etc/passwd') --",
  "A') ; ATTACH 'x.db' ; --",
  '\\\' OR "a"="a',
  "%' OR symbol LIKE '%",
  // numbers and times that are none, or too large
  "-1",
  "0",
  "00001",
  "+1",
  "1.5",
  "1e309",
  "0x10",
  "NaN",
  "-Infinity",
  "4294967296",
  "9007199254740993",
  "9223372036854775807",
  "9223372036854775808",
  "-9223372036854775809",
  "9".repeat(400),
  "2022-13-45T99:99:99Z",
  "0000-01-01T00:00:00Z",
  "9999-12-31T23:59:59.999999999Z",
  "+275760-09-13T00:00:00Z",
  "true",
  // names that mean something elsewhere
  "",
  " ",
  "*",
  "current",
  "null",
  "__proto__",
  "constructor",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a template of somebody else's
  "${7*7}{{7*7}}%(x)s",
  "<script>alert(1)</script>",
  // bytes
  "\u0000",
  "alpha\u0000.json",
  "a\r\nset-cookie: x=y",
  "\u{1F600}\u202E\uFEFF",
  "\uFFFD",
  "x".repeat(5000),
];
