// The row normaliser's inner loop, in AssemblyScript: `npm run generate` compiles it to src/gen/wasm/normalise-rows.ts.
//
// It handles rows of the usual form, and leaves every other line to the careful way in
// src/gateway/profile/rows/careful-row.ts, whose result is final: a function here that returns 0 has met something it is
// not sure of, not something it found wrong. All memory is laid out by src/gateway/profile/rows/row-kernel.ts.

/** Writes the shortest text of a double to `out`; returns its length, 0 if it is no double, -1 if the text may stay. */
declare function rewriteDouble(at: i32, length: i32, out: i32): i32;

// types of values on the wire
const plainText: i32 = 1;
const escapedText: i32 = 2;
const whole: i32 = 3;
const fraction: i32 = 4;
const isTrue: i32 = 5;
const isFalse: i32 = 6;
const isNull: i32 = 7;
const notANumber: i32 = 8;
const infinite: i32 = 9;
const minusInfinite: i32 = 10;
const nested: i32 = 11;
const exponent: i32 = 12;

// what an entry of a path's object leads to
const toNode: i32 = 1;
const toNothing: i32 = 2;

// what a column makes of its value
const opText: i32 = 0;
const opExact: i32 = 1;
const opInteger: i32 = 2;
const opTime: i32 = 3;
const opDouble: i32 = 4;
const opWords: i32 = 5;
const opInstant: i32 = 6;

const flagOptional: i32 = 1;
const flagNull: i32 = 2;
const flagBare: i32 = 4;
const flagSigned: i32 = 8;

// records of values that no column takes
const recordMember: i32 = 0;
const recordOpen: i32 = 1;
const recordClose: i32 = 2;
const recordBytes: i32 = 28;
const mostRecords: i32 = 256;

const mostKeys: i32 = 4096;
const mostKeysOfOne: i32 = 64;
const deepest: i32 = 63;
const seenSlots: i32 = 1024;

let root: i32 = 0;
let columns: i32 = 0;
let columnsEnd: i32 = 0;
let tail: i32 = 0;
let tailLength: i32 = 0;
let extraLead: i32 = 0;
let extraLeadLength: i32 = 0;
let fixedBytes: i32 = 0;
let uses: i32 = 0;
let frozen: i32 = 0;
let records: i32 = 0;
let keys: i32 = 0;
let seen: i32 = 0;
let scratch: i32 = 0;

let row: i32 = 0;
let recordsEnd: i32 = 0;
let members: i32 = 0;
let keysEnd: i32 = 0;
let seenCount: i32 = 0;
let isNew: i32 = 0;
/** Whether the string read last has escapes. */
let escaped: i32 = 0;
/** Bounds and type of the value read last. */
let valueStart: i32 = 0;
let valueEnd: i32 = 0;
let valueType: i32 = 0;
let lastDay: i32 = -1;
let lastDayNumber: i64 = 0;

let lineAt: i32 = 0;
let lineStop: i32 = 0;
let written: i32 = 0;

export function lineStart(): i32 {
  return lineAt;
}
export function lineEnd(): i32 {
  return lineStop;
}
export function outEnd(): i32 {
  return written;
}

/** Reads from a header where everything is, as row-kernel.ts writes it. */
export function begin(header: i32): void {
  root = load<i32>(header);
  columns = load<i32>(header, 4);
  columnsEnd = load<i32>(header, 8);
  tail = load<i32>(header, 12);
  tailLength = load<i32>(header, 16);
  extraLead = load<i32>(header, 20);
  extraLeadLength = load<i32>(header, 24);
  fixedBytes = load<i32>(header, 28);
  uses = load<i32>(header, 32);
  frozen = load<i32>(header, 36);
  records = load<i32>(header, 40);
  keys = load<i32>(header, 44);
  seen = load<i32>(header, 48);
  scratch = load<i32>(header, 52);
}

/**
 * Makes lines canonical from `at` on; the text before `end` ends with a line end. Returns 0 when all are done, 1 if the
 * next line may not fit before `limit`, 2 at a line for the careful way, 3 after a line with a field not seen before.
 */
export function run(at: i32, end: i32, out: i32, limit: i32): i32 {
  let p = at;
  while (p < end) {
    const stop = lineEndFrom(p);
    lineAt = p;
    lineStop = stop;
    written = out;
    const length = stop - p;
    if (<i64>out + <i64>fixedBytes + <i64>length * <i64>uses > <i64>limit) return 1;
    row++;
    isNew = 0;
    const next = line(p, stop, out);
    if (next === 0) return 2;
    out = next;
    p = stop + 1;
    if (isNew !== 0) {
      written = out;
      return 3;
    }
  }
  lineAt = p;
  lineStop = p;
  written = out;
  return 0;
}

function lineEndFrom(p: i32): i32 {
  const lineFeeds = i8x16.splat(10);
  for (;;) {
    const found = i8x16.bitmask(i8x16.eq(v128.load(p), lineFeeds));
    if (found !== 0) return p + ctz(found);
    p += 16;
  }
  return 0;
}

function line(p: i32, stop: i32, out: i32): i32 {
  p = skipBlanks(p);
  if (load<u8>(p) !== 0x7b) return 0;
  recordsEnd = records;
  members = 0;
  p = pathObject(p + 1, root, 1);
  if (p === 0) return 0;
  if (p !== stop && skipBlanks(p) !== stop) return 0;
  return emit(out);
}

function skipBlanks(p: i32): i32 {
  for (;;) {
    const c = load<u8>(p);
    if (c !== 0x20 && c !== 0x09 && c !== 0x0d) return p;
    p++;
  }
  return p;
}

/** Reads an object that has fields for columns, from after its brace. */
function pathObject(p: i32, node: i32, depth: i32): i32 {
  p = skipBlanks(p);
  if (load<u8>(p) === 0x7d) return p + 1;
  let hint = load<i32>(node, 8);
  let before = 0;
  for (;;) {
    if (load<u8>(p) !== 0x22) return 0;
    const key = p + 1;
    let entry = hint;
    if (entry === 0 || !isKey(entry, key)) {
      entry = entryOf(node, key);
      if (entry !== 0) {
        if (before !== 0) store<i32>(before, entry, 32);
        else store<i32>(node, entry, 8);
      }
    }
    let keyEnd: i32;
    if (entry !== 0) {
      keyEnd = key + load<i32>(entry, 20) - 1;
    } else {
      keyEnd = stringEnd(key);
      if (keyEnd === 0 || escaped !== 0) return 0;
    }
    p = keyEnd + 1;
    if (load<u8>(p) !== 0x3a) {
      p = skipBlanks(p);
      if (load<u8>(p) !== 0x3a) return 0;
    }
    p++;
    if (load<u8>(p) <= 0x20) p = skipBlanks(p);
    if (entry === 0) {
      p = value(p, depth);
      if (p === 0 || !unknown(node, key, keyEnd)) return 0;
    } else {
      before = entry;
      hint = load<i32>(entry, 32);
      const kind = load<i32>(entry, 24);
      const to = load<i32>(entry, 28);
      // each place begins with the last row in which it was met
      if (load<i32>(to) === row) return 0;
      store<i32>(to, row);
      if (kind === toNode && load<u8>(p) === 0x7b) {
        if (depth >= deepest) return 0;
        const inside = skipBlanks(p + 1);
        if (load<u8>(inside) === 0x7d) {
          // an object without fields would leave no trace
          valueStart = p;
          valueEnd = inside + 1;
          valueType = nested;
          p = inside + 1;
          if (!unknown(node, key, keyEnd)) return 0;
        } else {
          if (!record(recordOpen, node, key, keyEnd)) return 0;
          p = pathObject(p + 1, to, depth + 1);
          if (p === 0) return 0;
          if (load<i32>(recordsEnd - recordBytes) === recordOpen) recordsEnd -= recordBytes;
          else if (!record(recordClose, node, 0, 0)) return 0;
        }
      } else {
        p = value(p, depth);
        if (p === 0) return 0;
        if (kind === toNode) {
          if (!unknown(node, key, keyEnd)) return 0;
        } else if (kind !== toNothing) {
          store<i32>(to, valueStart, 4);
          store<i32>(to, valueEnd, 8);
          store<i32>(to, valueType, 12);
        }
      }
    }
    let c = load<u8>(p);
    if (c <= 0x20) {
      p = skipBlanks(p);
      c = load<u8>(p);
    }
    if (c === 0x7d) return p + 1;
    if (c !== 0x2c) return 0;
    p++;
    if (load<u8>(p) <= 0x20) p = skipBlanks(p);
  }
  return 0;
}

/** Whether the key that begins at `at`, with its closing quote, is the entry's. */
function isKey(entry: i32, at: i32): bool {
  if ((load<u64>(at) & load<u64>(entry, 8)) !== load<u64>(entry)) return false;
  const length = load<i32>(entry, 20);
  if (length <= 8) return true;
  const key = load<i32>(entry, 16);
  for (let i = 8; i + 8 <= length; i += 8) {
    if (load<u64>(at + i) !== load<u64>(key + i)) return false;
  }
  return load<u64>(at + length - 8) === load<u64>(key + length - 8);
}

function entryOf(node: i32, at: i32): i32 {
  let entry = load<i32>(node, 4);
  const end = load<i32>(node, 12);
  for (; entry < end; entry += 40) {
    if (isKey(entry, at)) return entry;
  }
  return 0;
}

function record(kind: i32, node: i32, key: i32, keyEnd: i32): bool {
  const at = recordsEnd;
  if (at >= records + mostRecords * recordBytes) return false;
  store<i32>(at, kind);
  store<i32>(at, node, 4);
  store<i32>(at, key, 8);
  store<i32>(at, keyEnd, 12);
  recordsEnd = at + recordBytes;
  return true;
}

/** Keeps the value read last, which no column takes. */
function unknown(node: i32, key: i32, keyEnd: i32): bool {
  if (frozen !== 0) return false;
  for (let at = records; at < recordsEnd; at += recordBytes) {
    if (
      load<i32>(at) === recordMember &&
      load<i32>(at, 4) === node &&
      isSame(load<i32>(at, 8), load<i32>(at, 12), key, keyEnd)
    ) {
      return false;
    }
  }
  const at = recordsEnd;
  if (!record(recordMember, node, key, keyEnd)) return false;
  store<i32>(at, valueStart, 16);
  store<i32>(at, valueEnd, 20);
  store<i32>(at, valueType, 24);
  members++;
  see(node, key, keyEnd);
  return true;
}

/** Notes whether a field was met before; after some hundreds, all are taken as met. */
function see(node: i32, key: i32, keyEnd: i32): void {
  let hash: u64 = <u64>node * 0x9e3779b97f4a7c15;
  for (let p = key; p < keyEnd; p++) hash = (hash ^ <u64>load<u8>(p)) * 0x100000001b3;
  hash ^= hash >> 29;
  if (hash === 0) hash = 1;
  let slot = <i32>(hash & (seenSlots - 1));
  for (;;) {
    const held = load<u64>(seen + (slot << 3));
    if (held === hash) return;
    if (held === 0) break;
    slot = (slot + 1) & (seenSlots - 1);
  }
  if (seenCount >= seenSlots >> 1) return;
  seenCount++;
  store<u64>(seen + (slot << 3), hash);
  isNew = 1;
}

function isSame(a: i32, aEnd: i32, b: i32, bEnd: i32): bool {
  if (aEnd - a !== bEnd - b) return false;
  for (; a < aEnd; a++, b++) {
    if (load<u8>(a) !== load<u8>(b)) return false;
  }
  return true;
}

/** Reads any value, and leaves its bounds and type in the variables. Returns the position after it. */
function value(p: i32, depth: i32): i32 {
  const c = load<u8>(p);
  if (c === 0x22) {
    valueStart = p + 1;
    const end = stringEnd(p + 1);
    if (end === 0) return 0;
    valueEnd = end;
    valueType = escaped !== 0 ? escapedText : plainText;
    return end + 1;
  }
  if (c === 0x2d || (c >= 0x30 && c <= 0x39)) return number(p);
  switch (c) {
    case 0x74:
      return word(p, 4, 0x65757274, isTrue);
    case 0x6e:
      return word(p, 4, 0x6c6c756e, isNull);
    case 0x66:
      return load<u8>(p + 4) === 0x65 ? word(p, 5, 0x736c6166, isFalse) : 0;
    case 0x4e:
      return load<u16>(p + 1) === 0x4e61 ? word(p, 3, load<i32>(p), notANumber) : 0;
    case 0x49:
      return load<i32>(p + 4) === 0x74696e69 ? word(p, 8, 0x69666e49, infinite) : 0;
    case 0x7b:
    case 0x5b: {
      keysEnd = keys;
      const end = nestedEnd(p, depth);
      if (end === 0) return 0;
      valueStart = p;
      valueEnd = end;
      valueType = nested;
      return end;
    }
    default:
      return 0;
  }
}

function word(p: i32, length: i32, start: i32, type: i32): i32 {
  if (load<i32>(p) !== start) return 0;
  valueStart = p;
  valueEnd = p + length;
  valueType = type;
  return p + length;
}

function number(p: i32): i32 {
  valueStart = p;
  let c = load<u8>(p);
  if (c === 0x2d) {
    c = load<u8>(++p);
    if (c === 0x49) {
      if (load<u64>(p) !== 0x7974696e69666e49) return 0;
      valueEnd = p + 8;
      valueType = minusInfinite;
      return p + 8;
    }
  }
  const first = p;
  p = c === 0x30 ? p + 1 : digitsEnd(p);
  if (p === first) return 0;
  c = load<u8>(p);
  valueType = whole;
  if (c === 0x2e) {
    valueType = fraction;
    const part = p + 1;
    p = digitsEnd(part);
    if (p === part) return 0;
    c = load<u8>(p);
  }
  if ((c | 0x20) === 0x65) {
    valueType = exponent;
    c = load<u8>(++p);
    if (c === 0x2b || c === 0x2d) p++;
    const power = p;
    p = digitsEnd(p);
    if (p === power) return 0;
  }
  valueEnd = p;
  return p;
}

/** Where the digits from `p` on end. The line end after all text is no digit. */
function digitsEnd(p: i32): i32 {
  for (;;) {
    const digits = i8x16.sub(v128.load(p), i8x16.splat(0x30));
    const others = i8x16.bitmask(i8x16.gt_u(digits, i8x16.splat(9)));
    if (others !== 0) return p + ctz(others);
    p += 16;
  }
  return 0;
}

/** The position after an object or array that no column looks into. */
function nestedEnd(p: i32, depth: i32): i32 {
  if (depth >= deepest) return 0;
  const isObject = load<u8>(p) === 0x7b;
  const close = isObject ? 0x7d : 0x5d;
  p = skipBlanks(p + 1);
  if (load<u8>(p) === close) return p + 1;
  const own = keysEnd;
  for (;;) {
    if (isObject) {
      if (load<u8>(p) !== 0x22) return 0;
      const key = p + 1;
      const keyEnd = stringEnd(key);
      if (keyEnd === 0 || escaped !== 0) return 0;
      for (let at = own; at < keysEnd; at += 8) {
        if (isSame(load<i32>(at), load<i32>(at, 4), key, keyEnd)) return 0;
      }
      if (keysEnd >= keys + mostKeys * 8 || keysEnd >= own + mostKeysOfOne * 8) return 0;
      store<i32>(keysEnd, key);
      store<i32>(keysEnd, keyEnd, 4);
      keysEnd += 8;
      p = skipBlanks(keyEnd + 1);
      if (load<u8>(p) !== 0x3a) return 0;
      p = skipBlanks(p + 1);
    }
    const c = load<u8>(p);
    if (c === 0x7b || c === 0x5b) p = nestedEnd(p, depth + 1);
    else p = value(p, depth);
    if (p === 0) return 0;
    p = skipBlanks(p);
    const next = load<u8>(p);
    if (next === close) {
      keysEnd = own;
      return p + 1;
    }
    if (next !== 0x2c) return 0;
    p = skipBlanks(p + 1);
  }
  return 0;
}

/** The position of a string's closing quote, from after the opening one; 0 if there is none. */
function stringEnd(p: i32): i32 {
  escaped = 0;
  const quotes = i8x16.splat(0x22);
  const backslashes = i8x16.splat(0x5c);
  const spaces = i8x16.splat(0x20);
  for (;;) {
    const text = v128.load(p);
    // bytes beyond ASCII are negative, so they are less than a space
    const odd = v128.or(
      v128.or(i8x16.eq(text, quotes), i8x16.eq(text, backslashes)),
      i8x16.lt_s(text, spaces),
    );
    const found = i8x16.bitmask(odd);
    if (found !== 0) {
      p += ctz(found);
      break;
    }
    p += 16;
  }
  return load<u8>(p) === 0x22 ? p : oddStringEnd(p);
}

function oddStringEnd(p: i32): i32 {
  for (;;) {
    const c = <i32>load<u8>(p);
    if (c === 0x22) return p;
    if (c < 0x20) return 0;
    if (c < 0x80) {
      if (c !== 0x5c) {
        p++;
        continue;
      }
      escaped = 1;
      const kind = load<u8>(p + 1);
      if (kind === 0x75) {
        const unit = hex4(p + 2);
        if (unit < 0) return 0;
        p += 6;
        if (unit >= 0xd800 && unit <= 0xdfff) {
          if (unit >= 0xdc00 || load<u16>(p) !== 0x755c) return 0;
          const low = hex4(p + 2);
          if (low < 0xdc00 || low > 0xdfff) return 0;
          p += 6;
        }
      } else if (
        kind === 0x22 ||
        kind === 0x5c ||
        kind === 0x2f ||
        kind === 0x62 ||
        kind === 0x66 ||
        kind === 0x6e ||
        kind === 0x72 ||
        kind === 0x74
      ) {
        p += 2;
      } else {
        return 0;
      }
      continue;
    }
    const second = <i32>load<u8>(p + 1);
    if (c < 0xe0) {
      if (c < 0xc2 || !isMore(second)) return 0;
      p += 2;
    } else if (c < 0xf0) {
      if (!isMore(second) || !isMore(load<u8>(p + 2))) return 0;
      if (c === 0xe0 && second < 0xa0) return 0;
      if (c === 0xed && second > 0x9f) return 0;
      p += 3;
    } else {
      if (c > 0xf4 || !isMore(second) || !isMore(load<u8>(p + 2)) || !isMore(load<u8>(p + 3))) return 0;
      if (c === 0xf0 && second < 0x90) return 0;
      if (c === 0xf4 && second > 0x8f) return 0;
      p += 4;
    }
  }
  return 0;
}

function isMore(c: i32): bool {
  return (c & 0xc0) === 0x80;
}

function hex4(p: i32): i32 {
  let unit = 0;
  for (let i = 0; i < 4; i++) {
    const c = <i32>load<u8>(p + i);
    let digit: i32;
    if (c >= 0x30 && c <= 0x39) digit = c - 0x30;
    else if (c >= 0x41 && c <= 0x46) digit = c - 0x37;
    else if (c >= 0x61 && c <= 0x66) digit = c - 0x57;
    else return -1;
    unit = (unit << 4) | digit;
  }
  return unit;
}

function copy(out: i32, from: i32, length: i32): i32 {
  let i = 0;
  do {
    v128.store(out + i, v128.load(from + i));
    i += 16;
  } while (i < length);
  return out + length;
}

function emit(out: i32): i32 {
  for (let column = columns; column < columnsEnd; column += 40) {
    out = copy(out, load<i32>(column), load<i32>(column, 4));
    const leaf = load<i32>(column, 12);
    const flags = load<i32>(column, 16);
    if (load<i32>(leaf) !== row) {
      if ((flags & flagOptional) === 0) return 0;
      out = copy(out, load<i32>(column, 24), load<i32>(column, 28));
      continue;
    }
    const type = load<i32>(leaf, 12);
    if (type === isNull) {
      if ((flags & flagNull) === 0) return 0;
      out = copy(out, load<i32>(column, 24), load<i32>(column, 28));
      continue;
    }
    const start = load<i32>(leaf, 4);
    const end = load<i32>(leaf, 8);
    switch (load<i32>(column, 8)) {
      case opText:
        if (type === plainText) out = copy(out, start, end - start);
        else if (type === escapedText) out = unescaped(start, end, out);
        else return 0;
        break;
      case opExact:
        if (type !== plainText) {
          if ((flags & flagBare) === 0 || (type !== whole && type !== fraction && type !== exponent))
            return 0;
        } else if (start === end) {
          break;
        }
        out = exact(start, end, out);
        if (out === 0) return 0;
        break;
      case opInteger:
        if (type !== plainText && type !== whole && type !== fraction && type !== exponent) return 0;
        out = integer(start, end, out, (flags & flagSigned) !== 0);
        if (out === 0) return 0;
        break;
      case opTime:
        if (type !== plainText && type !== whole && type !== fraction && type !== exponent) return 0;
        out = time(start, end, out, load<i32>(column, 20));
        if (out === 0) return 0;
        break;
      case opDouble:
        out = double(start, end, type, out);
        if (out === 0) return 0;
        break;
      case opWords:
        out = wordOf(column, start, end, type, out);
        if (out === 0) return 0;
        break;
      case opInstant:
        if (type !== plainText) return 0;
        out = instant(start, end, out);
        if (out === 0) return 0;
        break;
      default:
        return 0;
    }
  }
  out = copy(out, tail, tailLength);
  if (members !== 0) out = extra(out);
  store<u16>(out, 0x0a7d);
  return out + 2;
}

function extra(out: i32): i32 {
  out = copy(out, extraLead, extraLeadLength);
  let isFirst = true;
  for (let at = records; at < recordsEnd; at += recordBytes) {
    const kind = load<i32>(at);
    if (kind === recordClose) {
      store<u8>(out++, 0x7d);
      isFirst = false;
      continue;
    }
    if (!isFirst) store<u8>(out++, 0x2c);
    const key = load<i32>(at, 8);
    store<u8>(out++, 0x22);
    out = copy(out, key, load<i32>(at, 12) - key);
    store<u16>(out, 0x3a22);
    out += 2;
    if (kind === recordOpen) {
      store<u8>(out++, 0x7b);
      isFirst = true;
      continue;
    }
    isFirst = false;
    out = ownText(load<i32>(at, 16), load<i32>(at, 20), load<i32>(at, 24), out);
  }
  store<u8>(out++, 0x7d);
  return out;
}

/** A value as it came, without blanks, its strings escaped as in the canonical line. */
function ownText(start: i32, end: i32, type: i32, out: i32): i32 {
  switch (type) {
    case nested:
      return nestedText(start, end, out);
    case plainText:
    case escapedText:
      store<u8>(out++, 0x22);
      out = type === plainText ? copy(out, start, end - start) : unescaped(start, end, out);
      store<u8>(out++, 0x22);
      return out;
    case notANumber:
    case infinite:
    case minusInfinite:
      return quoted(start, end, out);
    default:
      return copy(out, start, end - start);
  }
}

function quoted(start: i32, end: i32, out: i32): i32 {
  store<u8>(out++, 0x22);
  out = copy(out, start, end - start);
  store<u8>(out++, 0x22);
  return out;
}

function nestedText(p: i32, end: i32, out: i32): i32 {
  while (p < end) {
    const c = load<u8>(p);
    if (c === 0x22) {
      const stop = stringEnd(p + 1);
      store<u8>(out++, 0x22);
      out = escaped !== 0 ? unescaped(p + 1, stop, out) : copy(out, p + 1, stop - p - 1);
      store<u8>(out++, 0x22);
      p = stop + 1;
    } else if (c <= 0x20) {
      p++;
    } else if (c === 0x4e) {
      out = quoted(p, p + 3, out);
      p += 3;
    } else if (c === 0x49) {
      out = quoted(p, p + 8, out);
      p += 8;
    } else if (c === 0x2d && load<u8>(p + 1) === 0x49) {
      out = quoted(p, p + 9, out);
      p += 9;
    } else {
      store<u8>(out++, c);
      p++;
    }
  }
  return out;
}

/** A string with escapes as JSON.stringify writes it. */
function unescaped(p: i32, end: i32, out: i32): i32 {
  while (p < end) {
    const c = load<u8>(p);
    if (c !== 0x5c) {
      store<u8>(out++, c);
      p++;
      continue;
    }
    const kind = load<u8>(p + 1);
    if (kind !== 0x75) {
      p += 2;
      if (kind === 0x2f) {
        store<u8>(out++, kind);
      } else {
        store<u8>(out, 0x5c);
        store<u8>(out + 1, kind);
        out += 2;
      }
      continue;
    }
    let point = hex4(p + 2);
    p += 6;
    if (point >= 0xd800 && point <= 0xdbff) {
      point = 0x10000 + ((point - 0xd800) << 10) + hex4(p + 2) - 0xdc00;
      p += 6;
    }
    if (point < 0x20) {
      const short = shortEscape(point);
      store<u8>(out, 0x5c);
      if (short !== 0) {
        store<u8>(out + 1, short);
        out += 2;
      } else {
        store<u8>(out + 1, 0x75);
        store<u16>(out + 2, 0x3030);
        store<u8>(out + 4, 0x30 + (point >> 4));
        const low = point & 15;
        store<u8>(out + 5, low < 10 ? 0x30 + low : 0x57 + low);
        out += 6;
      }
    } else if (point < 0x80) {
      if (point === 0x22 || point === 0x5c) store<u8>(out++, 0x5c);
      store<u8>(out++, point);
    } else if (point < 0x800) {
      store<u8>(out, 0xc0 | (point >> 6));
      store<u8>(out + 1, 0x80 | (point & 0x3f));
      out += 2;
    } else if (point < 0x10000) {
      store<u8>(out, 0xe0 | (point >> 12));
      store<u8>(out + 1, 0x80 | ((point >> 6) & 0x3f));
      store<u8>(out + 2, 0x80 | (point & 0x3f));
      out += 3;
    } else {
      store<u8>(out, 0xf0 | (point >> 18));
      store<u8>(out + 1, 0x80 | ((point >> 12) & 0x3f));
      store<u8>(out + 2, 0x80 | ((point >> 6) & 0x3f));
      store<u8>(out + 3, 0x80 | (point & 0x3f));
      out += 4;
    }
  }
  return out;
}

function shortEscape(point: i32): i32 {
  switch (point) {
    case 8:
      return 0x62;
    case 9:
      return 0x74;
    case 10:
      return 0x6e;
    case 12:
      return 0x66;
    case 13:
      return 0x72;
    default:
      return 0;
  }
}

function exact(start: i32, end: i32, out: i32): i32 {
  const first = load<u8>(start) === 0x2d ? start + 1 : start;
  let p = digitsEnd(first);
  const digits = p - first;
  if (digits === 0 || (digits > 1 && load<u8>(first) === 0x30)) return decimal(start, end, out, 0);
  if (p !== end) {
    if (load<u8>(p) !== 0x2e) return decimal(start, end, out, 0);
    const point = p;
    if (digitsEnd(point + 1) !== end || end === point + 1) return decimal(start, end, out, 0);
    p = end;
    while (load<u8>(p - 1) === 0x30) p--;
    if (p !== point + 1) return copy(out, start, p - start);
    p = point;
  }
  if (load<u8>(first) === 0x30) {
    store<u8>(out, 0x30);
    return out + 1;
  }
  return copy(out, start, p - start);
}

/** Any decimal, with or without exponent, times ten to the `shift`, in canonical spelling. */
function decimal(start: i32, end: i32, out: i32, shift: i32): i32 {
  let p = start;
  const isNegative = p < end && load<u8>(p) === 0x2d;
  if (isNegative) p++;
  const whole = p;
  while (p < end && isDigit(p)) p++;
  const wholeDigits = p - whole;
  if (wholeDigits === 0) return 0;
  let part = p;
  let partDigits = 0;
  if (p < end && load<u8>(p) === 0x2e) {
    part = ++p;
    while (p < end && isDigit(p)) p++;
    partDigits = p - part;
    if (partDigits === 0) return 0;
  }
  let power = 0;
  if (p < end && (load<u8>(p) | 0x20) === 0x65) {
    p++;
    if (p >= end) return 0;
    const sign = load<u8>(p);
    if (sign === 0x2b || sign === 0x2d) p++;
    const first = p;
    while (p < end && isDigit(p)) {
      if (power < 100000) power = power * 10 + <i32>load<u8>(p) - 0x30;
      p++;
    }
    if (p === first) return 0;
    if (sign === 0x2d) power = -power;
  }
  if (p !== end) return 0;
  const count = wholeDigits + partDigits;
  let first = 0;
  while (first < count && digitAt(whole, wholeDigits, part, first) === 0x30) first++;
  if (first === count) {
    store<u8>(out, 0x30);
    return out + 1;
  }
  let last = count - 1;
  while (digitAt(whole, wholeDigits, part, last) === 0x30) last--;
  // the point's position among the digits
  const point = wholeDigits + power + shift;
  if (point - last > 200 || first - point > 200) return 0;
  if (isNegative) store<u8>(out++, 0x2d);
  if (point <= first) {
    store<u16>(out, 0x2e30);
    out += 2;
    for (let i = point; i < first; i++) store<u8>(out++, 0x30);
  }
  for (let i = first; i <= last; i++) {
    if (i === point && i !== first) store<u8>(out++, 0x2e);
    store<u8>(out++, digitAt(whole, wholeDigits, part, i));
  }
  for (let i = last + 1; i < point; i++) store<u8>(out++, 0x30);
  return out;
}

function isDigit(p: i32): bool {
  const c = load<u8>(p);
  return c >= 0x30 && c <= 0x39;
}

function digitAt(whole: i32, wholeDigits: i32, part: i32, index: i32): u8 {
  return index < wholeDigits ? load<u8>(whole + index) : load<u8>(part + index - wholeDigits);
}

/** Whether all are digits, and the first is not zero. */
function isCount(start: i32, end: i32): bool {
  return start !== end && load<u8>(start) !== 0x30 && digitsEnd(start) === end;
}

function integer(start: i32, end: i32, out: i32, signed: bool): i32 {
  if (isCount(start, end)) return copy(out, start, end - start);
  const next = decimal(start, end, out, 0);
  if (next === 0) return 0;
  if (load<u8>(out) === 0x2d && !signed) return 0;
  for (let p = out; p < next; p++) {
    if (load<u8>(p) === 0x2e) return 0;
  }
  return next;
}

function time(start: i32, end: i32, out: i32, shift: i32): i32 {
  if (isCount(start, end)) {
    const digits = end - start + shift;
    if (digits > 19) return 0;
    copy(out, start, end - start);
    const zeros = out + (end - start);
    store<u64>(zeros, 0x3030303030303030);
    store<u8>(zeros, 0x30, 8);
    return digits < 19 || isInt64(out) ? out + digits : 0;
  }
  const next = decimal(start, end, out, shift);
  if (next === 0) return 0;
  const first = load<u8>(out) === 0x2d ? out + 1 : out;
  for (let p = first; p < next; p++) {
    if (load<u8>(p) === 0x2e) return 0;
  }
  const digits = next - first;
  return digits < 19 || (digits === 19 && isInt64(first)) ? next : 0;
}

/** Whether a number of 19 digits is less than the largest int64. */
function isInt64(p: i32): bool {
  if (load<u8>(p) < 0x39) return true;
  let number: u64 = 0;
  for (let i = 0; i < 19; i++) number = number * 10 + <u64>(load<u8>(p + i) - 0x30);
  return number < 9223372036854775807;
}

function twoDigits(p: i32): i32 {
  const tens = <i32>load<u8>(p) - 0x30;
  const ones = <i32>load<u8>(p + 1) - 0x30;
  if (<u32>tens > 9 || <u32>ones > 9) return -1;
  return tens * 10 + ones;
}

/** RFC 3339 from 1970 to 2261; all others are left to the careful way. */
function instant(start: i32, end: i32, out: i32): i32 {
  if (end - start < 20) return 0;
  if (
    load<u8>(start + 4) !== 0x2d ||
    load<u8>(start + 7) !== 0x2d ||
    load<u8>(start + 10) !== 0x54 ||
    load<u8>(start + 13) !== 0x3a ||
    load<u8>(start + 16) !== 0x3a
  ) {
    return 0;
  }
  const century = twoDigits(start);
  const ofCentury = twoDigits(start + 2);
  const month = twoDigits(start + 5);
  const day = twoDigits(start + 8);
  const hour = twoDigits(start + 11);
  const minute = twoDigits(start + 14);
  const second = twoDigits(start + 17);
  if ((century | ofCentury | month | day | hour | minute | second) < 0) return 0;
  const year = century * 100 + ofCentury;
  if (year < 1970 || year > 2261 || hour > 23 || minute > 59 || second > 59) return 0;
  const date = (year * 100 + month) * 100 + day;
  if (date !== lastDay) {
    if (month < 1 || month > 12 || day < 1 || day > daysOf(year, month)) return 0;
    lastDay = date;
    lastDayNumber = dayNumber(year, month, day);
  }
  let p = start + 19;
  let part: i64 = 0;
  if (load<u8>(p) === 0x2e) {
    p++;
    let digits = 0;
    for (; p < end && isDigit(p); p++, digits++) {
      const digit = <i64>load<u8>(p) - 0x30;
      if (digits < 9) part = part * 10 + digit;
      else if (digit !== 0) return 0;
    }
    if (digits === 0) return 0;
    for (; digits < 9; digits++) part *= 10;
  }
  let offset: i64 = 0;
  const zone = load<u8>(p);
  if (zone === 0x5a) {
    p++;
  } else if (zone === 0x2b || zone === 0x2d) {
    if (end - p !== 6 || load<u8>(p + 3) !== 0x3a) return 0;
    const hours = twoDigits(p + 1);
    const minutes = twoDigits(p + 4);
    if ((hours | minutes) < 0 || hours > 23 || minutes > 59) return 0;
    offset = <i64>(hours * 60 + minutes) * 60;
    if (zone === 0x2d) offset = -offset;
    p += 6;
  } else {
    return 0;
  }
  if (p !== end) return 0;
  const seconds = lastDayNumber * 86400 + <i64>((hour * 60 + minute) * 60 + second) - offset;
  if (seconds < 1) return 0;
  let rest = <u64>(seconds * 1000000000 + part);
  let at = scratch + 24;
  while (rest !== 0) {
    const next = rest / 10;
    store<u8>(--at, 0x30 + <u8>(rest - next * 10));
    rest = next;
  }
  return copy(out, at, scratch + 24 - at);
}

function daysOf(year: i32, month: i32): i32 {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** Days from 1970 to a date of the Gregorian calendar: years begin in March, so leap days come last. */
function dayNumber(year: i32, month: i32, day: i32): i64 {
  const y = month <= 2 ? year - 1 : year;
  const era = y / 400;
  const yearOfEra = y - era * 400;
  const dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear;
  return <i64>era * 146097 + <i64>dayOfEra - 719468;
}

function double(start: i32, end: i32, type: i32, out: i32): i32 {
  switch (type) {
    case notANumber:
    case infinite:
    case minusInfinite:
      return quoted(start, end, out);
    case plainText:
    case whole:
    case fraction:
    case exponent: {
      const next = shortDouble(start, end, out);
      if (next !== 0) return next;
      const length = end - start;
      if (length > 1000) return 0;
      const size = rewriteDouble(start, length, out);
      if (size < 0) return copy(out, start, length);
      return size === 0 ? 0 : out + size;
    }
    default:
      return 0;
  }
}

/** A number of at most 15 digits without exponent: no text of the same double is shorter, except for zeros at the end. */
function shortDouble(start: i32, end: i32, out: i32): i32 {
  let p = start;
  if (p < end && load<u8>(p) === 0x2d) p++;
  const first = p;
  if (end - first > 16) return 0;
  while (p < end && isDigit(p)) p++;
  const digits = p - first;
  if (digits === 0 || (digits > 1 && load<u8>(first) === 0x30)) return 0;
  if (p === end) return digits <= 15 ? copy(out, start, end - start) : 0;
  if (load<u8>(p) !== 0x2e) return 0;
  const point = p;
  p++;
  while (p < end && isDigit(p)) p++;
  if (p !== end || p === point + 1) return 0;
  // the point is one of the sixteen
  while (load<u8>(p - 1) === 0x30) p--;
  if (p === point + 1) return copy(out, start, point - start);
  // below a millionth there is an exponent
  if (
    load<u8>(first) === 0x30 &&
    point + 6 < p &&
    load<u32>(point + 1) === 0x30303030 &&
    load<u16>(point + 5) === 0x3030
  ) {
    return 0;
  }
  return copy(out, start, p - start);
}

function wordOf(column: i32, start: i32, end: i32, type: i32, out: i32): i32 {
  let kind = type;
  if (type === fraction) {
    // 1.0 is 1
    let p = end;
    while (load<u8>(p - 1) === 0x30) p--;
    if (load<u8>(p - 1) === 0x2e) {
      end = p - 1;
      kind = whole;
    }
  }
  let at = load<i32>(column, 32);
  const stop = load<i32>(column, 36);
  for (; at < stop; at += 20) {
    if (load<i32>(at, 8) !== kind) continue;
    const key = load<i32>(at);
    if (isSame(key, key + load<i32>(at, 4), start, end)) {
      return copy(out, load<i32>(at, 12), load<i32>(at, 16));
    }
  }
  return 0;
}
