// Boxes of tokens, and what is said of one: a list box with one stop for Tab.

import { make } from "./elements.js";

const HINT = "Point at a token, or walk through the tokens with the arrow keys.";
const MOST_JOINED = 64; // tokens that are tried as one character

// token: what `Token.as_json` of the library has, {id, shown, bytes, rank, is_special}; at: its
// number in its text; why: what is said of it, too.
export function tokenBox(token, at, classes = "", why = "") {
  const special = token.is_special ? "special" : "";
  const box = make("span", {
    class: `t c${at % 5} ${special} ${classes}`, role: "option", "aria-selected": "false", tabindex: "-1",
    "aria-label": `${token.shown}, id ${token.id}`,
  }, token.shown);
  return Object.assign(box, { token, at, why });
}

function sayToken({ token, at, why }) {
  const rank = token.is_special ? "special token" : token.rank === null ? "no rank" : `rank ${token.rank}`;
  const size = token.bytes.length / 2;
  const spaced = token.bytes.replace(/..(?=.)/g, "$& "); // "e6 97 a5"
  return [
    make("b", {}, `token ${at}: id ${token.id}`), `, ${rank}`, make("br"),
    `“${token.shown}”, ${size} ${size === 1 ? "byte" : "bytes"}: ${spaced}`,
    ...(why ? [make("br"), why] : []),
  ];
}

// Boxes of tokens that share a character go together under that character.
export function wholeCharacters(boxes) {
  const made = [];
  for (let i = 0; i < boxes.length;) {
    let [bytes, stop, text] = ["", i, null];
    while (text === null && stop < Math.min(i + MOST_JOINED, boxes.length)) {
      bytes += boxes[stop].token.bytes;
      text = decoded(bytes);
      stop += 1;
    }
    if (text === null) stop = i + 1; // not text
    made.push(stop === i + 1 ? boxes[i] : make("span", { class: "whole" },
      make("span", { class: "sign", "aria-hidden": "true" }, signs(text)),
      make("span", { class: "pieces" }, ...boxes.slice(i, stop))));
    i = stop;
  }
  return made;
}

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
    this.said = null; // the box that the detail is of
    const on = (name, act) => list.addEventListener(name, (event) => {
      const box = event.target.closest(".t");
      if (box) act(box, event);
    });
    on("mouseover", (box) => this.say(box));
    on("focusin", (box) => this.choose(box));
    on("click", onChosen);
    on("keydown", (box, event) => this.onKey(box, event, onChosen));
    this.set([]);
  }

  boxes() {
    return [...this.list.querySelectorAll(".t")];
  }

  // Show these elements, which have the boxes. The first box is the one that Tab reaches.
  set(elements) {
    this.list.replaceChildren(...elements);
    const [first] = this.boxes();
    this.list.role = first ? "listbox" : "group";
    if (first) first.tabIndex = 0;
    if (this.said?.isConnected) return;
    if (this.said || !this.detail.textContent) this.detail.textContent = HINT;
    this.said = null; // it is not drawn any more
  }

  say(box) {
    this.said = box;
    this.detail.replaceChildren(...sayToken(box));
  }

  choose(box) {
    this.say(box);
    for (const one of this.list.querySelectorAll(".t[tabindex='0']")) {
      one.ariaSelected = "false";
      one.tabIndex = -1;
    }
    box.ariaSelected = "true";
    box.tabIndex = 0;
  }

  onKey(box, event, onChosen) {
    const boxes = this.boxes();
    const at = boxes.indexOf(box);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: boxes.length - 1 }[event.key];
    const isChosen = event.key === "Enter" || event.key === " ";
    if (to === undefined && !isChosen) return;
    event.preventDefault();
    if (isChosen) onChosen(box);
    else boxes[to]?.focus();
  }
}
