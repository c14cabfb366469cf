// A text, and the edits that were not sent to the server yet.
//
// Offsets are UTF-16 here, as everywhere in JavaScript. The server and the user count characters
// (code points): they differ only in texts with characters beyond U+FFFF.

const LONGEST = 400; // a longer line is drawn in several rows

const HALVES = /[\ud800-\udfff]/;

export const wellFormed = (text) =>
  text.isWellFormed?.() === false || !text.isWellFormed
    ? text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd")
    : text;

export const plainLines = (text) => wellFormed(text.replace(/\r\n?/g, "\n"));

export class TextModel {
  constructor() {
    this.set("");
  }

  set(text) {
    this.text = text;
    this.hasPairs = HALVES.test(text);
    this.known = [0, 0]; // an offset, and how many characters are before it
    this.size = this.characters(text.length);
    this.rows = rowsOf(text); // lengths of the rows that are drawn
    this.starts = null;
    this.edits = [];
  }

  // The text from start to stop becomes `text`. Returns the rows that changed: [first, removed, added].
  replace(start, stop, text) {
    const edit = [this.characters(start), this.characters(stop), text];
    this.edits.push(edit);
    this.characters(start); // a known offset that the edit does not move
    if (HALVES.test(text)) this.hasPairs = true;
    this.size += edit[0] - edit[1] + countCharacters(text, 0, text.length);
    const starts = this.rowStarts();
    let first = this.rowAt(start);
    while (first > 0 && this.text[starts[first] - 1] !== "\n") first -= 1;
    let last = this.rowAt(stop) + 1;
    while (last < this.rows.length && this.text[starts[last] - 1] !== "\n") last += 1;
    const begin = starts[first];
    const end = last < this.rows.length ? starts[last] : this.text.length;
    const changed = this.text.slice(begin, start) + text + this.text.slice(stop, end);
    this.text = this.text.slice(0, start) + text + this.text.slice(stop);
    const rows = rowsOf(changed);
    // An empty row follows a line end only at the end of the text.
    if (last < this.rows.length && rows[rows.length - 1] === 0) rows.pop();
    this.rows = splice(this.rows, first, last - first, rows);
    this.starts = null;
    return [first, last - first, rows.length];
  }

  takeEdits() {
    const edits = this.edits;
    this.edits = [];
    return edits;
  }

  // How many characters (code points) are before an offset.
  characters(offset) {
    if (!this.hasPairs) return offset;
    const [at, count] = this.known;
    const known = offset < at
      ? count - countCharacters(this.text, offset, at)
      : count + countCharacters(this.text, at, offset);
    this.known = [offset, known];
    return known;
  }

  // The start of each row, then the end of the text.
  rowStarts() {
    if (this.starts === null) {
      const starts = new Float64Array(this.rows.length + 1);
      for (let i = 0; i < this.rows.length; i += 1) starts[i + 1] = starts[i] + this.rows[i];
      this.starts = starts;
    }
    return this.starts;
  }

  rowAt(offset) {
    return Math.min(lastAtMost(this.rowStarts(), offset), this.rows.length - 1);
  }

  // An offset near this one that is not inside a character.
  between(offset) {
    return (this.text.charCodeAt(offset) & 0xfc00) === 0xdc00 ? offset - 1 : offset;
  }
}

// The first `most` characters of a text.
export function firstCharacters(text, most) {
  let stop = Math.min(most, text.length);
  let left = most - countCharacters(text, 0, stop);
  while (left > 0 && stop < text.length) {
    stop += text.codePointAt(stop) > 0xffff ? 2 : 1;
    left -= 1;
  }
  return text.slice(0, (text.charCodeAt(stop - 1) & 0xfc00) === 0xd800 ? stop - 1 : stop);
}

export function countCharacters(text, start, stop) {
  let pairs = 0;
  for (let i = start; i < stop; i += 1) if ((text.charCodeAt(i) & 0xfc00) === 0xdc00) pairs += 1;
  return stop - start - pairs;
}

// The index of the last number that is at most `value`; the numbers rise.
export function lastAtMost(numbers, value) {
  let low = 0;
  let high = numbers.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= value) low = middle;
    else high = middle;
  }
  return low;
}

function rowsOf(text) {
  const rows = [];
  let at = 0;
  for (;;) {
    const found = text.indexOf("\n", at);
    const end = found < 0 ? text.length : found + 1;
    while (end - at > LONGEST + 1) {
      let stop = at + LONGEST;
      if ((text.charCodeAt(stop) & 0xfc00) === 0xdc00) stop -= 1;
      rows.push(stop - at);
      at = stop;
    }
    rows.push(end - at);
    at = end;
    if (found < 0) return rows;
  }
}

export function splice(list, first, removed, added) {
  if (removed === added.length) {
    for (let i = 0; i < added.length; i += 1) list[first + i] = added[i];
    return list;
  }
  return list.slice(0, first).concat(added, list.slice(first + removed));
}
