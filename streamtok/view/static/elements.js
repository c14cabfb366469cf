// Makes elements. Text is inserted as text, never as HTML.

export const $ = (id) => document.getElementById(id);

export function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function onClick(id, act) {
  $(id).addEventListener("click", act);
}

export function makeButton(act, ...children) {
  const button = make("button", { type: "button" }, ...children);
  button.addEventListener("click", act);
  return button;
}

export function showCounts(list, pairs) {
  list.replaceChildren(
    ...pairs.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))),
  );
}

export const whole = (number) => number.toLocaleString("en");
export const decimal = (number, digits = 3) =>
  Number.isFinite(number) ? number.toFixed(digits) : "–";
