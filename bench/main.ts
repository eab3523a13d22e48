// npm run bench -- NAME [options]: runs one benchmark. They are run apart from the tests and print ratios.
const names = [
  "archive",
  "checksum",
  "export",
  "metrics",
  "peers",
  "profiles",
  "rpc",
  "serve",
  "start",
  "templates",
  "versions",
];
const [name] = process.argv.slice(2);
if (name === undefined || !names.includes(name)) {
  process.stderr.write(`usage: npm run bench -- ${names.join("|")} [options]\n`);
  process.exitCode = 2;
} else {
  await import(`./${name}.ts`);
}
