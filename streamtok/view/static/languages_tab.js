// The tab Languages: the tokens of the same text in each language, as a chart and as a table.

import { post } from "./api.js";
import { $, decimal, make, whole } from "./elements.js";
import { Tab } from "./tab.js";

const MEASURES = {
  times_english: (value) => decimal(value, 2),
  tokens_per_character: (value) => decimal(value),
  tokens_per_byte: (value) => decimal(value),
  tokens: whole,
};

export class LanguagesTab extends Tab {
  constructor(page) {
    super(page, "languages");
    this.order = { column: 0, isUp: false };
    const chosen = ["r50k_base", "cl100k_base", "o200k_base"];
    for (const name of page.about.encodings) this.addEncoding(name, chosen.includes(name));
    $("languages-measure").addEventListener("change", () => this.show());
  }

  addEncoding(name, isChosen) {
    const box = make("input", { type: "checkbox", value: name });
    box.checked = isChosen;
    box.addEventListener("change", () => this.load());
    $("languages-choices").append(make("label", {}, box, ` ${name}`));
  }

  load() {
    const boxes = [...$("languages-choices").querySelectorAll("input")];
    const { encoding } = this.page; // always one of them
    for (const box of boxes) box.disabled = box.value === encoding;
    const others = boxes.filter((box) => box.checked && box.value !== encoding).map((box) => box.value);
    const encodings = [encoding, ...others];
    if (String(encodings) === String(this.table?.encodings)) return this.stay();
    return this.asking(async (isLast) => {
      const table = await post("languages", { encodings });
      if (!isLast()) return;
      this.table = table;
      this.order = { column: 4, isUp: false }; // most tokens in the first encoding first
      this.show();
    });
  }

  clear() {
    this.table = null;
    for (const id of ["languages-chart", "languages-caption"]) $(id).replaceChildren();
    $("languages-table").tBodies[0].replaceChildren();
  }

  // The columns of the table: a title, the value of a row, and how it is written.
  columns() {
    const measure = $("languages-measure").value;
    return [
      ["language", (row) => row.name, String],
      ["code", (row) => row.code, String],
      ["characters", (row) => row.n_characters, whole],
      ["bytes", (row) => row.n_bytes, whole],
      ...this.table.encodings.map((name, i) => [name, (row) => row[measure][i], MEASURES[measure]]),
    ];
  }

  show() {
    if (!this.table) return;
    const columns = this.columns();
    const { column, isUp } = this.order;
    const [, value] = columns[column];
    const rows = [...this.table.rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      const order = typeof x === "string" ? x.localeCompare(y) : x - y;
      return isUp ? order : -order;
    });
    const head = columns.map(([title], i) => {
      const sort = i === column ? (isUp ? "ascending" : "descending") : null;
      const button = make("button", { type: "button" }, title + (sort ? (isUp ? " ▲" : " ▼") : ""));
      button.addEventListener("click", () => this.sort(i));
      return make("th", { scope: "col", "aria-sort": sort, class: i > 1 ? "number" : "" }, button);
    });
    $("languages-table").tHead.rows[0].replaceChildren(...head);
    $("languages-table").tBodies[0].replaceChildren(...rows.map((row) => make("tr", {},
      ...columns.map(([, get, say], i) =>
        i === 0 ? make("th", { scope: "row" }, say(get(row)))
          : make("td", { class: i > 1 ? "number" : "code" }, say(get(row)))))));
    const measure = $("languages-measure");
    const what = measure.selectedOptions[0].textContent;
    $("languages-caption").replaceChildren(what,
      ...this.table.encodings.flatMap((name, i) => [make("span", { class: `key key${i % 4}` }), name]));
    const chart = barChart(
      rows.map((row) => ({ name: row.name, values: row[measure.value] })),
      MEASURES[measure.value],
      `${what}, in ${this.table.rows.length} languages; the table below has the numbers`,
    );
    $("languages-chart").replaceChildren(chart);
  }

  sort(column) {
    const { order } = this;
    this.order = { column, isUp: order.column === column ? !order.isUp : column < 2 };
    this.show();
    $("languages-table").tHead.querySelectorAll("button")[column].focus();
  }
}

// Bars in HTML, which wrap and shrink with the window.
// rows: {name, values}, one bar for each value. say(value): its text. label: the chart in words.
function barChart(rows, say, label) {
  const most = Math.max(...rows.flatMap((row) => row.values), 1e-9);
  const chart = make("div", { class: "bars", role: "img", "aria-label": label });
  for (const row of rows) {
    const bars = row.values.map((value, which) => {
      const length = make("span", { class: `length bar${which % 4}` });
      length.style.setProperty("--share", value / most);
      return make("div", { class: "bar" }, length, make("span", { class: "said" }, say(value)));
    });
    chart.append(make("div", { class: "name" }, row.name), make("div", {}, ...bars));
  }
  return chart;
}
