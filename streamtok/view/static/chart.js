// Bars in SVG.

const SPACE = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, text = null) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

// Horizontal bars: rows of {name, values}, one bar for each value. say(value): its text.
export function barChart(rows, say, label) {
  const [left, width, thick] = [120, 560, 9];
  const most = Math.max(...rows.flatMap((row) => row.values), 1e-9);
  const each = Math.max(rows[0] ? rows[0].values.length : 1, 1) * thick + 5;
  const height = rows.length * each + 8;
  const made = svg("svg", { viewBox: `0 0 ${left + width + 60} ${height}`, class: "chart", role: "img", "aria-label": label });
  rows.forEach((row, i) => {
    const top = i * each + 4;
    made.append(svg("text", { x: left - 6, y: top + each / 2 + 1, "text-anchor": "end" }, row.name));
    row.values.forEach((value, which) => {
      const length = (value / most) * width;
      made.append(svg("rect", { x: left, y: top + which * thick, width: length, height: thick - 1, class: `bar${which % 4}` }));
      made.append(svg("text", { x: left + length + 4, y: top + which * thick + thick - 1, class: "faint" }, say(value)));
    });
  });
  return made;
}

// Upright bars: counts of classes, each with a name below it.
export function histogram(names, counts, label) {
  const [width, height, bottom] = [700, 170, 28];
  const most = Math.max(...counts, 1);
  const each = width / Math.max(counts.length, 1);
  const made = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": label });
  counts.forEach((count, i) => {
    const tall = (count / most) * (height - bottom - 16);
    const x = i * each;
    made.append(svg("rect", { x: x + 2, y: height - bottom - tall, width: each - 4, height: tall, class: "bar0" }));
    const middle = { x: x + each / 2, "text-anchor": "middle" };
    if (count) made.append(svg("text", { ...middle, y: height - bottom - tall - 3, class: "faint" }, count.toLocaleString("en")));
    made.append(svg("text", { ...middle, y: height - 12 }, names[i]));
  });
  made.append(svg("line", { x1: 0, x2: width, y1: height - bottom, y2: height - bottom, class: "grid-line" }));
  return made;
}
