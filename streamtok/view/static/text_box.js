// The box in which a text is typed. A browser lays out a text area of a megabyte anew with each
// key, which takes a tenth of a second and more; so the box holds a part of a long text, the part
// around the cursor, and the part moves with the cursor.

import { plainLines, wellFormed } from "./text_model.js";

const WHOLE = 24_000; // a text of up to this length is in the box as a whole
const PART = 12_000;
const EDGE = 400; // nearer to the edge of its part than this, the cursor takes the part along

export class TextBox {
  // onEdit(start, stop, text): the text of the model is to be changed. onPart(): the part has moved.
  constructor(area, model, onEdit, onPart) {
    this.area = area;
    this.model = model;
    this.onEdit = onEdit;
    this.onPart = onPart;
    this.start = 0;
    this.stop = 0;
    area.addEventListener("input", (event) => this.onInput(event));
    area.addEventListener("compositionend", () => this.followCursor());
    area.addEventListener("keyup", () => this.followCursor());
    area.addEventListener("click", () => this.followCursor());
    area.addEventListener("paste", (event) => this.onPaste(event));
  }

  get isWhole() {
    return this.start === 0 && this.stop === this.model.text.length;
  }

  // Show the part of the text around a place, with the cursor there.
  show(place, isFocused = false) {
    const { model } = this;
    const size = model.text.length;
    if (size <= WHOLE) [this.start, this.stop] = [0, size];
    else {
      const start = Math.max(0, Math.min(place - PART / 2, size - PART));
      const stop = Math.min(size, start + PART);
      // Whole lines, if they are not too long.
      const lineStart = start ? model.text.lastIndexOf("\n", start - 1) + 1 : 0;
      const lineStop = model.text.indexOf("\n", stop);
      this.start = model.between(start - lineStart < EDGE ? lineStart : start);
      this.stop = model.between(lineStop >= 0 && lineStop - stop < EDGE ? lineStop + 1 : stop);
      if (lineStop < 0 && size - stop < EDGE) this.stop = size;
    }
    this.area.value = model.text.slice(this.start, this.stop);
    const cursor = place - this.start;
    this.area.setSelectionRange(cursor, cursor);
    if (isFocused) {
      this.area.blur(); // a browser scrolls to the cursor when the box gets the focus
      this.area.focus();
    }
    this.onPart();
  }

  onInput(event) {
    const text = wellFormed(this.area.value);
    const old = this.model.text.slice(this.start, this.stop);
    const shortest = Math.min(old.length, text.length);
    // What is before the cursor cannot be told from what is behind it in "aaa": any place is right.
    let same = 0;
    while (same < shortest && old.charCodeAt(same) === text.charCodeAt(same)) same += 1;
    if (same && (text.charCodeAt(same - 1) & 0xfc00) === 0xd800) same -= 1;
    let behind = 0;
    while (
      behind < shortest - same &&
      old.charCodeAt(old.length - 1 - behind) === text.charCodeAt(text.length - 1 - behind)
    ) behind += 1;
    if (behind && (old.charCodeAt(old.length - behind) & 0xfc00) === 0xdc00) behind -= 1;
    const start = this.start + same;
    const stop = this.stop - behind;
    const added = text.slice(same, text.length - behind);
    if (start === stop && !added) return;
    this.stop += text.length - old.length;
    this.onEdit(start, stop, added);
    if (!event.isComposing) this.followCursor();
  }

  onPaste(event) {
    const text = plainLines(event.clipboardData.getData("text/plain"));
    if (text.length < PART) return; // the browser's own way, with its undo
    event.preventDefault();
    const start = this.start + this.area.selectionStart;
    const stop = this.start + this.area.selectionEnd;
    this.onEdit(start, stop, text);
    this.show(start + text.length, true);
  }

  followCursor() {
    const cursor = this.area.selectionStart;
    if (cursor !== this.area.selectionEnd) return; // a selection stays
    const length = this.stop - this.start;
    const isNearStart = cursor < EDGE && this.start > 0;
    const isNearStop = cursor > length - EDGE && this.stop < this.model.text.length;
    if (isNearStart || isNearStop || length > WHOLE) {
      const place = this.start + cursor;
      const [start, stop] = [this.start, this.stop];
      if (length <= WHOLE && length > PART / 2 && this.model.text.length <= WHOLE) return;
      this.show(place, document.activeElement === this.area);
      if (start === this.start && stop === this.stop) return;
    }
  }

  turn(parts) {
    const middle = (this.start + this.stop) / 2 + parts * PART * 0.9;
    const place = Math.floor(Math.max(0, Math.min(middle, this.model.text.length)));
    this.show(this.model.between(place));
  }
}
