// A list that draws only its visible rows. The height of a row is an estimate until it is drawn.

import { make } from "./elements.js";
import { lastAtMost, splice } from "./text_model.js";

const MARGIN = 120; // pixels that are drawn above and below what is visible
const MOST = 300; // rows that are drawn at once

export class Rows {
  // onLook: called when other rows come into view.
  constructor(list, onLook) {
    this.list = list;
    this.room = make("div", { class: "room" });
    this.drawn = make("div", { class: "drawn" });
    this.room.append(this.drawn);
    this.list.append(this.room);
    this.heights = [];
    this.tops = null;
    list.addEventListener("scroll", onLook, { passive: true });
    new ResizeObserver(() => this.measureLetters() && onLook()).observe(list);
    this.measureLetters();
  }

  measureLetters() {
    const probe = make("span", { class: "t" }, "0".repeat(50));
    this.drawn.append(probe);
    const size = probe.getBoundingClientRect();
    probe.remove();
    if (!size.width) return false;
    this.height = size.height + 6;
    this.columns = Math.max(8, Math.floor((this.list.clientWidth / size.width) * 50 * 0.8));
    return true;
  }

  guess(length) {
    return this.height * Math.max(1, Math.ceil(length / this.columns));
  }

  set(lengths) {
    this.measureLetters();
    this.heights = lengths.map((length) => this.guess(length));
    this.tops = null;
  }

  change(first, removed, lengths) {
    this.heights = splice(this.heights, first, removed, lengths.map((one) => this.guess(one)));
    this.tops = null;
  }

  allTops() {
    if (this.tops === null) {
      const tops = new Float64Array(this.heights.length + 1);
      for (let i = 0; i < this.heights.length; i += 1) tops[i + 1] = tops[i] + this.heights[i];
      this.tops = tops;
    }
    return this.tops;
  }

  // [first, last): the rows that are in view, with a margin.
  visible() {
    const tops = this.allTops();
    const top = this.list.scrollTop;
    const first = Math.min(lastAtMost(tops, Math.max(0, top - MARGIN)), this.heights.length - 1);
    const last = lastAtMost(tops, top + this.list.clientHeight + MARGIN) + 1;
    return [Math.max(first, 0), Math.min(last, this.heights.length, first + MOST)];
  }

  // Draw these elements as the rows from `first` on, and measure their heights.
  draw(first, rows) {
    this.putIn(rows);
    const tops = this.allTops();
    this.drawn.style.transform = `translateY(${tops[first]}px)`;
    const top = this.list.scrollTop;
    let moved = 0;
    let at = tops[first];
    rows.forEach((row, i) => {
      const height = row.offsetHeight;
      const difference = height - this.heights[first + i];
      if (difference) {
        if (at + this.heights[first + i] <= top) moved += difference;
        this.heights[first + i] = height;
        this.tops = null;
      }
      at += height;
    });
    const all = this.allTops();
    this.room.style.height = `${all[all.length - 1]}px`;
    if (moved) this.list.scrollTop = top + moved; // what is in view stays where it is
  }

  // Make `rows` the children. Elements that are already in order are not moved.
  putIn(rows) {
    const wanted = new Set(rows);
    for (const child of [...this.drawn.children]) if (!wanted.has(child)) child.remove();
    let at = this.drawn.firstElementChild;
    for (const row of rows) {
      if (row === at) at = at.nextElementSibling;
      else this.drawn.insertBefore(row, at);
    }
  }

  // Scroll so that a row is in view, if it is not.
  reveal(row) {
    const tops = this.allTops();
    const top = this.list.scrollTop;
    if (tops[row] < top || tops[row + 1] > top + this.list.clientHeight) {
      this.room.style.height = `${tops[tops.length - 1]}px`;
      this.list.scrollTop = Math.max(0, tops[row] - this.list.clientHeight / 3);
    }
  }
}
