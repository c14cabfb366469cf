// Boxes of tokens, and what is said of one: a list box with one stop for Tab.

import { make, spaced } from "./elements.js";

const HINT = "Point at a token, or walk through the tokens with the arrow keys.";
const MOST_JOINED = 64; // tokens that are tried as one character

const EMPTY = make("span", { class: "t", role: "option", "aria-selected": "false", tabindex: "-1" });

// token: what `Token.as_json` of the library has, {id, shown, bytes, rank, is_special}; at: its number in its text.
export function tokenBox(token, at, more = "") {
  const box = EMPTY.cloneNode(false);
  box.classList.add(`c${at % 5}`);
  if (token.is_special) box.classList.add("special");
  if (more) box.classList.add(more);
  box.textContent = token.shown;
  box.token = token;
  box.at = at;
  return box;
}

function sayToken(token, index) {
  const rank = token.is_special ? ", special token"
    : token.rank === undefined ? "" : token.rank === null ? ", no rank" : `, rank ${token.rank}`;
  const size = token.bytes.length / 2;
  return [
    make("b", {}, `${token.noun ?? "token"} ${index}: ${token.noun ? "ids" : "id"} ${token.id}`), rank, make("br"),
    `“${token.shown}”, ${size} ${size === 1 ? "byte" : "bytes"}: ${spaced(token.bytes)}`,
  ];
}

// Boxes of tokens that share a character, or what is read as one, go together under that character.
export function wholeCharacters(boxes) {
  const parts = []; // {text, boxes}: whole characters
  for (let i = 0; i < boxes.length;) {
    let [bytes, stop, text] = ["", i, null];
    while (text === null && stop < Math.min(i + MOST_JOINED, boxes.length)) {
      bytes += boxes[stop].token.bytes;
      text = decoded(bytes);
      stop += 1;
    }
    if (text === null) stop = i + 1; // not text
    parts.push({ text: text ?? "", boxes: boxes.slice(i, stop) });
    i = stop;
  }
  const starts = new Set();
  const text = parts.map((part) => part.text).join("");
  if (segmenter && !/^[\0-\x7f]*$/.test(text)) {
    for (const one of segmenter.segment(text)) starts.add(one.index);
  }
  const joined = [];
  let at = 0;
  for (const part of parts) {
    const last = joined[joined.length - 1];
    if (last && part.text && starts.size && !starts.has(at)) {
      last.text += part.text;
      last.boxes.push(...part.boxes);
    } else joined.push(part);
    at += part.text.length;
  }
  return joined.flatMap((part) => (part.boxes.length === 1 ? part.boxes : [
    make("span", { class: "whole" }, make("span", { class: "sign", "aria-hidden": "true" }, signs(part.text)),
      make("span", { class: "pieces" }, ...part.boxes))]));
}

// Append boxes to an element; the first may complete a character whose tokens it has already.
export function appendWhole(element, boxes) {
  const begun = [];
  const focused = document.activeElement;
  let last = element.lastElementChild;
  while (last) {
    begun.unshift(...(last.matches(".t") ? [last] : last.querySelectorAll(".t")));
    last.remove();
    const before = element.lastElementChild;
    const isPart = before?.matches(".t") && decoded(before.token.bytes) === null;
    last = isPart && begun.length < MOST_JOINED ? before : null;
  }
  element.append(...wholeCharacters([...begun, ...boxes]));
  if (begun.includes(focused)) focused.focus();
}

const segmenter = globalThis.Intl?.Segmenter && new Intl.Segmenter("en");
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const signs = (text) => text.replaceAll(" ", "·").replaceAll("\n", "⏎").replaceAll("\t", "⇥");

function decoded(hex) {
  try {
    return utf8.decode(Uint8Array.from(hex.match(/../g) ?? [], (byte) => parseInt(byte, 16)));
  } catch {
    return null;
  }
}

// Hover and focus say what a token is; arrows walk; `onChosen` is called by Enter and clicks.
export class TokenList {
  constructor(list, detail, onChosen = () => {}) {
    this.list = list;
    this.detail = detail;
    this.active = 0;
    this.more = null; // a function that says more of a token
    this.said = null; // the box that the detail is of
    this.forget();
    list.addEventListener("mouseover", (event) => this.say(event.target.closest(".t")));
    list.addEventListener("focusin", (event) => this.say(event.target.closest(".t"), true));
    list.addEventListener("click", (event) => {
      const box = event.target.closest(".t");
      if (box) onChosen(box);
    });
    list.addEventListener("keydown", (event) => this.onKey(event, onChosen));
  }

  boxes() {
    return [...this.list.querySelectorAll(".t")];
  }

  say(box, isFocused = false) {
    if (!box || !box.token) return;
    if (isFocused) this.choose(box);
    this.said = box;
    const more = this.more?.(box.token, box);
    const added = more ? [make("br"), more] : [];
    this.detail.replaceChildren(...sayToken(box.token, box.at), ...added);
  }

  // Say nothing of a token that is not drawn any more.
  forget() {
    if (this.said?.isConnected) return;
    if (this.said || !this.detail.textContent) this.detail.textContent = HINT;
    this.said = null;
  }

  choose(box) {
    for (const one of this.list.querySelectorAll("[aria-selected=true]")) {
      one.setAttribute("aria-selected", "false");
      one.tabIndex = -1;
    }
    box.setAttribute("aria-selected", "true");
    box.setAttribute("aria-label", `${box.token.shown}, id ${box.token.id}`);
    box.tabIndex = 0;
    this.active = box.at;
  }

  onKey(event, onChosen) {
    const box = event.target.closest(".t");
    if (!box) return;
    const boxes = this.boxes();
    const at = boxes.indexOf(box);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: boxes.length - 1,
      ArrowDown: this.vertical(boxes, at, 1), ArrowUp: this.vertical(boxes, at, -1) }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      boxes[to]?.focus();
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      onChosen(box);
    }
  }

  // The box on the next line that is nearest to this one.
  vertical(boxes, at, step) {
    const from = boxes[at].getBoundingClientRect();
    let best = at;
    let distance = Infinity;
    for (let i = at + step; i >= 0 && i < boxes.length; i += step) {
      const place = boxes[i].getBoundingClientRect();
      const down = (place.top - from.top) * step;
      if (down < 4) continue;
      const away = down * 4 + Math.abs(place.left - from.left);
      if (away < distance) [best, distance] = [i, away];
      else if (down > 200) break;
    }
    return best;
  }

  // Call it when boxes have been put in: one of them can be reached by Tab.
  refresh() {
    this.forget();
    const boxes = this.boxes();
    if (boxes.length) this.list.setAttribute("role", "listbox");
    else this.list.setAttribute("role", "group");
    const active = boxes.find((box) => box.at === this.active) ?? boxes[0];
    if (active) {
      for (const box of boxes) if (box.tabIndex === 0) box.tabIndex = -1;
      active.tabIndex = 0;
    }
    return active;
  }
}
