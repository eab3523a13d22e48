/**
 * The most similar name, for did-you-mean; null if none is similar. Similar means that at most a third of the longer
 * word's letters differ; swapping two neighbours counts once.
 */
export function nearestName(typed: string, names: Iterable<string>): string | null {
  let best: string | null = null;
  let bestDistance = Number.POSITIVE_INFINITY;
  const wanted = typed.toLowerCase();
  for (const name of names) {
    const distance = editDistance(wanted, name.toLowerCase());
    if (
      distance < bestDistance &&
      distance <= Math.max(1, Math.floor(Math.max(wanted.length, name.length) / 3))
    ) {
      best = name;
      bestDistance = distance;
    }
  }
  return best;
}

// optimal string alignment distance; words here are a few dozen letters
function editDistance(a: string, b: string): number {
  if (a.length > 64 || b.length > 64) return Number.POSITIVE_INFINITY;
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let steps = Math.min(rows[i - 1]![j]! + 1, row[j - 1]! + 1, rows[i - 1]![j - 1]! + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        steps = Math.min(steps, rows[i - 2]![j - 2]! + 1);
      }
      row.push(steps);
    }
    rows.push(row);
  }
  return rows[a.length]![b.length]!;
}
