/** A rectangle with several points in it. */
export interface ScatterCell {
  readonly x: readonly [number, number];
  readonly y: readonly [number, number];
  readonly count: number;
}

export interface ScatterGrid {
  readonly x: readonly [number, number];
  readonly y: readonly [number, number];
  readonly columns: number;
  /** About how many: if zero is on the axis, it lies between two rows. */
  readonly rows: number;
}

export interface ScatterCells {
  readonly crowded: readonly ScatterCell[];
  /** Points that are alone in their cell, by index. */
  readonly single: readonly number[];
}

/**
 * Counts points in the cells of a grid. Points that are alone in their cell are returned by index. Points beyond the
 * grid count in the cells at its edge.
 * @param x finite, as is y
 */
export function scatterCells(x: Float64Array, y: Float64Array, grid: ScatterGrid): ScatterCells {
  const [left, right] = grid.x;
  const [bottom, top] = grid.y;
  const width = (right - left) / grid.columns;
  const height = (top - bottom) / grid.rows;
  // rows are counted from zero, so that gains and losses are never in one cell
  const origin = bottom <= 0 && top >= 0 ? 0 : bottom;
  const lowest = Math.floor((bottom - origin) / height + 1e-9);
  const rows = Math.ceil((top - origin) / height - 1e-9) - lowest;
  const counts = new Uint32Array(grid.columns * rows);
  const firsts = new Uint32Array(counts.length);
  for (let index = 0; index < x.length; index++) {
    const column = clamp(Math.floor((x[index]! - left) / width), grid.columns);
    const row = clamp(Math.floor((y[index]! - origin) / height) - lowest, rows);
    const cell = row * grid.columns + column;
    if (counts[cell]!++ === 0) firsts[cell] = index;
  }
  const crowded: ScatterCell[] = [];
  const single: number[] = [];
  counts.forEach((count, cell) => {
    if (count === 1) single.push(firsts[cell]!);
    if (count < 2) return;
    const column = cell % grid.columns;
    const row = Math.floor(cell / grid.columns) + lowest;
    crowded.push({
      x: [left + column * width, left + (column + 1) * width],
      y: [Math.max(bottom, origin + row * height), Math.min(top, origin + (row + 1) * height)],
      count,
    });
  });
  return { crowded, single };
}

function clamp(index: number, count: number): number {
  return Math.min(count - 1, Math.max(0, index));
}
