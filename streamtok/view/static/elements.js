// Makes elements. Text goes in as text, never as HTML.

export const $ = (id) => document.getElementById(id);

export function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") made.className = value;
    else if (value !== undefined && value !== null) made.setAttribute(key, value);
  }
  made.append(...children.map((one) => (one instanceof Node ? one : String(one))));
  return made;
}

export function showCounts(list, pairs) {
  list.replaceChildren(
    ...pairs.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))),
  );
}

// A file that is chosen with an input or dropped on an area goes to take(file).
export function takeFiles(input, area, take) {
  input.addEventListener("change", () => {
    const [file] = input.files;
    if (file) take(file);
    input.value = "";
  });
  area.addEventListener("dragover", (event) => event.preventDefault());
  area.addEventListener("drop", (event) => {
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    take(file);
  });
}

// state: busy, ready or failed.
export function setState(panel, state) {
  panel.dataset.state = state;
  panel.setAttribute("aria-busy", String(state === "busy"));
}

export const whole = (number) => number.toLocaleString("en");
export const decimal = (number, digits = 3) =>
  Number.isFinite(number) ? number.toFixed(digits) : "–";

// "e6 97 a5"
export const spaced = (hex) => hex.replace(/..(?=.)/g, "$& ");
