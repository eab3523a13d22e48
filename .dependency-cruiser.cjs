// The rooms of src/ in the order in which they may import each other: a room sees only rooms of an earlier rank.
const ranks = [
  ["model", "gen"],
  ["row"],
  ["duckdb"],
  ["gateway", "simulator", "archive"],
  ["serve", "extract", "analytics"],
  ["faults"],
  ["report"],
  ["pipeline"],
  ["cli", "library"],
];

const rooms = ranks.flat();
const rank = (room) => ranks.findIndex((row) => row.includes(room));

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    {
      name: "known-rooms-only",
      severity: "error",
      from: { path: "^src/", pathNot: `^src/(${rooms.join("|")})/` },
      to: {},
    },
    {
      name: "faults-are-for-simulate",
      comment: "The server knows nothing of faults; who wants them gives it their hook.",
      severity: "error",
      from: {
        path: "^src/",
        pathNot: "^src/(faults/|cli/(commands/simulate|options/simulated-faults|simulate))",
      },
      to: { path: "^src/faults/" },
    },
    {
      name: "faults-see-the-hook-alone",
      severity: "error",
      from: { path: "^src/faults/" },
      to: { path: "^src/", pathNot: "^src/(faults|model|row|gen)/|^src/serve/wire-hook\\.ts$" },
    },
    ...rooms
      .map((room) => ({
        room,
        refused: rooms.filter(
          (other) => other !== room && rank(other) >= rank(room) && !(room === "model" && other === "gen"),
        ),
      }))
      .filter(({ refused }) => refused.length > 0)
      .map(({ room, refused }) => ({
        name: `${room}-looks-back-only`,
        severity: "error",
        from: { path: `^src/${room}/` },
        to: { path: `^src/(${refused.join("|")})/` },
      })),
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    doNotFollow: { path: "node_modules" },
  },
};
