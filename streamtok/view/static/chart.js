// Bars in HTML, which wrap and shrink with the window.

import { make } from "./elements.js";

// rows: {name, values}, one bar for each value. say(value): its text. label: the chart in words.
export function barChart(rows, say, label) {
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
