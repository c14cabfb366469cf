// The Languages tab: one sentence in many languages, and its tokens in the chosen encodings.

import { $, decimal, make, makeButton, whole } from "./elements.js";
import { Tab } from "./tab.js";

export class LanguagesTab extends Tab {
  constructor(page) {
    super(page, "languages");
    this.order = { column: 2, isUp: false }; // the most expensive first, relative to English
    this.rows = [];
    $("languages-filter").addEventListener("input", () => this.show());
  }

  load() {
    const encodings = [...new Set([this.page.encoding, this.page.beside])].filter((name) => name);
    return this.ask("languages", { encodings }, ({ rows }) => {
      const english = rows.find((row) => row.code === "en").tokens;
      this.encodings = encodings;
      this.rows = rows.map((row) => ({ ...row, times: row.tokens.map((count, i) => count / english[i]) }));
      this.most = Math.max(...this.rows.flatMap((row) => row.times));
      this.order.column = Math.min(this.order.column, this.columns().length - 1);
      this.show();
    });
  }

  // The columns of the table, each a title and the functions for the value and the cell of a row.
  columns() {
    return [
      ["Language", (row) => row.name, (row) => this.opener(row)],
      ...this.encodings.flatMap((name, i) => [
        [`Tokens in ${name}`, (row) => row.tokens[i], (row) => whole(row.tokens[i])],
        ["× English", (row) => row.times[i], (row) => this.share(row.times[i])],
      ]),
      ["Characters", (row) => [...row.text].length, (row) => whole([...row.text].length)],
    ];
  }

  // The name of a language, as a button that opens its sentence in the Text tab.
  opener(row) {
    return makeButton(() => {
      this.page.text.set(row.text);
      location.hash = "text";
    }, row.name);
  }

  share(times) {
    const bar = make("progress", { value: times, max: this.most, "aria-hidden": "true" });
    return make("span", { class: "share" }, bar, decimal(times, 2));
  }

  show() {
    if (!this.rows.length) return;
    const columns = this.columns();
    const { column, isUp } = this.order;
    const [, value] = columns[column];
    const wanted = $("languages-filter").value.trim().toLowerCase();
    const rows = this.rows.filter((row) => `${row.name} ${row.code}`.toLowerCase().includes(wanted));
    rows.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      const order = typeof x === "string" ? x.localeCompare(y) : x - y;
      return isUp ? order : -order;
    });
    const head = columns.map(([title], i) => {
      const sort = i === column ? (isUp ? "ascending" : "descending") : "none";
      const arrow = { none: "", ascending: " ▲", descending: " ▼" }[sort];
      return make("th", { scope: "col", "aria-sort": sort }, makeButton(() => this.sort(i), title + arrow));
    });
    $("languages-table").tHead.rows[0].replaceChildren(...head);
    $("languages-table").tBodies[0].replaceChildren(...rows.map((row) => make("tr", {},
      ...columns.map(([, , cell], i) => (i ? make("td", {}, cell(row)) : make("th", { scope: "row" }, cell(row)))))));
    $("languages-shown").textContent = `${rows.length} of ${this.rows.length} languages`;
  }

  sort(column) {
    const { order } = this;
    this.order = { column, isUp: order.column === column ? !order.isUp : column === 0 };
    this.show();
    $("languages-table").tHead.querySelectorAll("button")[column].focus();
  }
}
