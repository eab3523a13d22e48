/** The needed part of a file's coverage in istanbul's format. */
export interface FileCoverage {
  readonly path: string;
  readonly statementMap: Readonly<Record<string, Span>>;
  readonly s: Readonly<Record<string, number>>;
  readonly branchMap: Readonly<Record<string, { readonly type: string; readonly loc: Span }>>;
  readonly b: Readonly<Record<string, readonly number[]>>;
}

interface Span {
  readonly start: { readonly line: number };
}

/** Whether each line with a statement ran, and each way that a branch can go, by names that tell where it stands. */
export interface CoveredPlaces {
  readonly lines: Map<string, boolean>;
  readonly branches: Map<string, boolean>;
}

/**
 * The lines and branches of a file. Columns differ by a few characters with the compiler that the code went through, so
 * a branch is named by its line, its kind, and how many of that kind stand on the line before it.
 */
export function coveredPlaces(file: FileCoverage): CoveredPlaces {
  const lines = new Map<string, boolean>();
  for (const [id, { start }] of Object.entries(file.statementMap)) {
    const line = String(start.line);
    lines.set(line, lines.get(line) === true || file.s[id]! > 0);
  }
  const branches = new Map<string, boolean>();
  const onLine = new Map<string, number>();
  for (const [id, { type, loc }] of Object.entries(file.branchMap)) {
    const kind = `${loc.start.line} ${type}`;
    const before = onLine.get(kind) ?? 0;
    onLine.set(kind, before + 1);
    file.b[id]!.forEach((hits, way) => {
      branches.set(`${kind} ${before}.${way}`, hits > 0);
    });
  }
  return { lines, branches };
}

/** Adds what ran elsewhere to the places of a file. Returns how many places ran there that the file does not have. */
export function addPlaces(places: CoveredPlaces, elsewhere: CoveredPlaces): number {
  let unknown = 0;
  for (const kind of ["lines", "branches"] as const) {
    for (const [place, ran] of elsewhere[kind]) {
      if (!ran) continue;
      if (places[kind].has(place)) places[kind].set(place, true);
      else unknown++;
    }
  }
  return unknown;
}
