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
    for (const name of ["copy", "cut"]) area.addEventListener(name, (event) => this.onCopy(event));
    area.addEventListener("beforeinput", (event) => {
      this.isAll = this.hasAll && !event.inputType.startsWith("history");
    });
    document.addEventListener("selectionchange", () => document.activeElement === area && onPart());
    this.isAll = false; // the next input replaces the whole text
    this.replaced = null; // the whole text that the last such input replaced, and the part of the box
  }

  get isWhole() {
    return this.start === 0 && this.stop === this.model.text.length;
  }

  // Whether all of the box is selected, which selects the whole text.
  get hasAll() {
    const { selectionStart, selectionEnd, value } = this.area;
    return !this.isWhole && value !== "" && selectionStart === 0 && selectionEnd === value.length;
  }

  // Show the part of the text around an offset, with the cursor there.
  show(offset, isFocused = false) {
    const { model } = this;
    const size = model.text.length;
    if (size <= WHOLE) [this.start, this.stop] = [0, size];
    else {
      const start = Math.max(0, Math.min(offset - PART / 2, size - PART));
      const stop = Math.min(size, start + PART);
      // Whole lines, if they are not too long.
      const lineStart = start ? model.text.lastIndexOf("\n", start - 1) + 1 : 0;
      const lineStop = model.text.indexOf("\n", stop);
      this.start = model.between(start - lineStart < EDGE ? lineStart : start);
      this.stop = model.between(lineStop >= 0 && lineStop - stop < EDGE ? lineStop + 1 : stop);
      if (lineStop < 0 && size - stop < EDGE) this.stop = size;
    }
    this.area.value = model.text.slice(this.start, this.stop);
    const cursor = offset - this.start;
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
    if (this.isAll) {
      this.isAll = false;
      this.replaced = { part: old, text: this.model.text };
      this.onEdit(0, this.model.text.length, text);
      [this.start, this.stop] = [0, text.length];
      this.onPart();
      return;
    }
    if (this.replaced?.part === text && event.inputType === "historyUndo") {
      this.onEdit(0, this.model.text.length, this.replaced.text);
      this.replaced = null;
      this.show(0, true);
      return;
    }
    const shortest = Math.min(old.length, text.length);
    // The text before the cursor cannot be told from that after it in "aaa": any offset is right.
    let same = 0;
    while (same < shortest && old.charCodeAt(same) === text.charCodeAt(same)) same += 1;
    if (same && (text.charCodeAt(same - 1) & 0xfc00) === 0xd800) same -= 1;
    let after = 0;
    while (
      after < shortest - same &&
      old.charCodeAt(old.length - 1 - after) === text.charCodeAt(text.length - 1 - after)
    ) after += 1;
    if (after && (old.charCodeAt(old.length - after) & 0xfc00) === 0xdc00) after -= 1;
    const start = this.start + same;
    const stop = this.stop - after;
    const added = text.slice(same, text.length - after);
    if (start === stop && !added) return;
    this.stop += text.length - old.length;
    this.onEdit(start, stop, added);
    if (!event.isComposing) this.followCursor();
  }

  onPaste(event) {
    const text = plainLines(event.clipboardData.getData("text/plain"));
    if (text.length < PART) return; // the browser's own way, with its undo
    event.preventDefault();
    const { start, stop } = this.selected();
    if (this.onEdit(start, stop, text)) this.show(start + text.length, true);
  }

  onCopy(event) {
    if (!this.hasAll) return;
    event.preventDefault();
    event.clipboardData.setData("text/plain", this.model.text);
    if (event.type === "cut" && this.onEdit(0, this.model.text.length, "")) this.show(0, true);
  }

  selected() {
    if (this.hasAll) return { start: 0, stop: this.model.text.length };
    return { start: this.start + this.area.selectionStart, stop: this.start + this.area.selectionEnd };
  }

  followCursor() {
    const cursor = this.area.selectionStart;
    if (cursor !== this.area.selectionEnd) return; // a selection stays
    const length = this.stop - this.start;
    const isNearStart = cursor < EDGE && this.start > 0;
    const isNearStop = cursor > length - EDGE && this.stop < this.model.text.length;
    if (isNearStart || isNearStop || length > WHOLE) {
      const offset = this.start + cursor;
      const [start, stop] = [this.start, this.stop];
      if (length <= WHOLE && length > PART / 2 && this.model.text.length <= WHOLE) return;
      this.show(offset, document.activeElement === this.area);
      if (start === this.start && stop === this.stop) return;
    }
  }

  turn(parts) {
    const middle = (this.start + this.stop) / 2 + parts * PART * 0.9;
    const offset = Math.floor(Math.max(0, Math.min(middle, this.model.text.length)));
    this.show(this.model.between(offset));
  }
}
