// Saves the contents of a tab, without its controls, as an HTML file or as an image.

import { make } from "./elements.js";

const SCALE = 2; // pixels of the image per pixel of the page
const LONGEST = 8000; // pixels of height: browsers limit the size of a canvas

export function saveHtml(panel, about) {
  const shown = copyOf(panel, about);
  const head = `<meta charset="utf-8"><title>streamtok view</title><style>${styles()}</style>`;
  const text = new XMLSerializer().serializeToString(shown);
  save(new Blob([`<!doctype html><html lang="en"><head>${head}</head><body>${text}</body></html>`], { type: "text/html" }), panel, "html");
}

export async function saveImage(panel, about) {
  const width = Math.max(panel.offsetWidth, 320);
  const shown = copyOf(panel, about);
  shown.style.width = `${width}px`;
  // It is added to the page only to be measured.
  document.body.append(shown);
  const height = Math.min(shown.offsetHeight, LONGEST);
  shown.remove();
  // An image does not follow the page's light or dark scheme by itself.
  const scheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  shown.prepend(make("style", {}, `${styles()} :root { color-scheme: ${scheme}; }`));
  const inside = new XMLSerializer().serializeToString(shown);
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">` +
    `<foreignObject width="100%" height="100%">${inside}</foreignObject></svg>`)}`;
  await image.decode();
  const canvas = make("canvas", { width: width * SCALE, height: height * SCALE });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  save(await new Promise((done) => { canvas.toBlob(done); }), panel, "png");
}

const styles = () => [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules].map((rule) => rule.cssText)).join("\n");

// A copy of a panel that needs no scripts: text instead of input fields, and no buttons.
function copyOf(panel, about) {
  const copy = panel.cloneNode(true);
  const both = (what) => {
    const copies = copy.querySelectorAll(what);
    return [...panel.querySelectorAll(what)].map((one, i) => [one, copies[i]]);
  };
  for (const [box, copied] of both("textarea")) {
    copied.replaceWith(make("pre", { class: "typed" }, box.value.toWellFormed()));
  }
  for (const [box, copied] of both("select")) copied.replaceWith(make("b", {}, box.value || "none"));
  for (const [, copied] of both("button")) {
    if (copied.closest("table, .list")) copied.replaceWith(make("span", {}, ...copied.childNodes));
    else copied.remove();
  }
  for (const [, copied] of both("[hidden], label:has(input), .detail")) copied.remove();
  const title = `streamtok view: ${document.querySelector("nav [aria-current]").textContent}`;
  return make("div", { class: "saved" }, make("h1", {}, title), make("p", { class: "note" }, about), copy);
}

function save(blob, panel, ending) {
  if (!blob) throw new Error("this browser cannot make an image of it");
  const url = URL.createObjectURL(blob);
  make("a", { href: url, download: `streamtok-${panel.id.replace("panel-", "")}.${ending}` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
