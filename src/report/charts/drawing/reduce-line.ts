/**
 * The visible points of a line: in each of `columns` equal stretches of time between `from` and `to` the first, the
 * last, the smallest and the largest, and one NaN if there is any, so that gaps remain. Points outside are left out.
 * @param times rising, as many as values
 * @returns indices, rising; at most five per column
 */
export function reduceLine(
  times: Float64Array,
  values: Float64Array,
  { from, to, columns }: { readonly from: number; readonly to: number; readonly columns: number },
): Uint32Array {
  const kept = new Uint32Array(Math.min(times.length, columns * 5));
  const columnsPerMs = to > from ? columns / (to - from) : 0;
  let count = 0;
  let column = -1;
  let first = none;
  let last = none;
  let smallest = none;
  let largest = none;
  let gap = none;

  const keepColumn = () => {
    const before = count;
    for (const index of [first, last, smallest, largest, gap]) {
      if (index === none) continue;
      // sorted in as they come: there are five at most, and some are the same
      let place = count;
      while (place > before && kept[place - 1]! > index) place--;
      if (place > before && kept[place - 1] === index) continue;
      kept.copyWithin(place + 1, place, count);
      kept[place] = index;
      count++;
    }
  };

  for (let index = 0; index < times.length; index++) {
    const time = times[index]!;
    if (!(time >= from && time <= to)) continue;
    const here = Math.min(columns - 1, Math.floor((time - from) * columnsPerMs));
    if (here !== column) {
      keepColumn();
      column = here;
      first = last = smallest = largest = gap = none;
    }
    const value = values[index]!;
    if (Number.isNaN(value)) {
      if (gap === none) gap = index;
      continue;
    }
    if (first === none) first = smallest = largest = index;
    else if (value < values[smallest]!) smallest = index;
    else if (value > values[largest]!) largest = index;
    last = index;
  }
  keepColumn();
  return kept.slice(0, count);
}

const none = -1;
