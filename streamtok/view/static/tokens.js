// The details of a token, and a list box of tokens, which is one stop for the Tab key.

import { make } from "./elements.js";

const HINT = "Point at a token, or walk through the tokens with the arrow keys.";
const MOST_JOINED = 64; // tokens to try as one character

// token: from `Token.as_json` of the library, {id, shown, bytes, rank, is_special}, or a pre-token,
// {shown, bytes}; at: its index in the text; why: a further line of its details.
export function tokenBox(token, at, classes = "", why = "") {
  const special = token.is_special ? "special" : "";
  const id = token.id ?? "";
  const box = option(`t c${at % 5} ${special} ${classes}`, id === "" ? token.shown : `${token.shown}, id ${id}`, token.shown);
  box.dataset.id = id;
  return Object.assign(box, { token, at, why });
}

const option = (classes, label, ...children) => make("span", {
  class: classes, role: "option", "aria-selected": "false", tabindex: "-1", "aria-label": label,
}, ...children);

function sayToken({ token, at, why }) {
  const rank = token.is_special ? "special token" : token.rank === null ? "no rank" : `rank ${token.rank}`;
  const name = token.id === undefined ? `pre-token ${at}` : `token ${at}: id ${token.id}`;
  return [
    make("b", {}, name), ...(token.rank === undefined ? [] : [`, ${rank}`]), make("br"),
    `“${token.shown}”, ${sizeOf(token.bytes)}: ${spaced(token.bytes)}`,
    ...(why ? [make("br"), why] : []),
  ];
}

// bytes: hexadecimal digits.
export const spaced = (bytes) => bytes.replace(/..(?=.)/g, "$& "); // "e6 97 a5"
export const sizeOf = (bytes) => (bytes.length === 2 ? "1 byte" : `${bytes.length / 2} bytes`);

// Puts boxes of tokens that share a character into one box that opens. list: the TokenList.
export function wholeCharacters(boxes, list) {
  return characters(boxes).map(({ text, pieces }) => {
    if (pieces.length === 1) return pieces[0];
    // The whole box has the marks of all its pieces.
    const marks = new Set(pieces.flatMap((box) => [...box.classList].filter((name) => !/^(t|c\d)$/.test(name))));
    const size = `${pieces.length} tokens`;
    const sign = option(`sign c${pieces[0].at % 5} ${[...marks].join(" ")}`, `${signs(text)}, ${size}`,
      signs(text), make("small", {}, ` · ${size}`));
    const inside = make("span", { class: "pieces" }, ...pieces);
    inside.hidden = !list.isOpen(text);
    return make("span", { class: "whole" }, Object.assign(sign, { text, inside, pieces }), inside);
  });
}

// The smallest groups of boxes that hold whole characters, as readers count characters.
function characters(boxes) {
  const made = [];
  for (let i = 0; i < boxes.length;) {
    let [bytes, stop, text] = ["", i, null];
    while (text === null && stop < Math.min(i + MOST_JOINED, boxes.length)) {
      bytes += boxes[stop].token.bytes;
      text = decoded(bytes);
      stop += 1;
    }
    if (text === null) stop = i + 1; // not text
    const pieces = boxes.slice(i, stop);
    const last = made.at(-1);
    if (text && last?.text && isOneCharacter(last.text, text)) {
      last.text += text;
      last.pieces.push(...pieces);
    } else {
      made.push({ text, pieces });
    }
    i = stop;
  }
  return made;
}

const clusters = new Intl.Segmenter("en", { granularity: "grapheme" });

// Whether a character of several code points, such as a family emoji or a letter with an accent,
// begins in the first text and ends in the second.
function isOneCharacter(before, after) {
  if (after.charCodeAt(0) < 0x300) return false;
  const end = before.slice(-32);
  return clusters.segment(end + after).containing(end.length).index !== end.length;
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

// Hover and focus show the details of a token, arrow keys move between tokens, and Enter or a click
// calls `onChosen`. startsOpen: whether characters of several tokens are open at first.
export class TokenList {
  constructor(list, detail, onChosen = () => {}, startsOpen = false) {
    this.list = list;
    this.detail = detail;
    this.onChosen = onChosen;
    this.startsOpen = startsOpen;
    this.turned = new Set(); // texts of the characters that were opened or closed
    this.said = null; // the box whose details are shown
    const on = (name, act) => list.addEventListener(name, (event) => {
      const box = event.target.closest(".t, .sign");
      if (box) act(box, event);
    });
    on("mouseover", (box) => this.say(box));
    on("focusin", (box) => this.choose(box));
    on("click", (box) => this.press(box));
    on("keydown", (box, event) => this.onKey(box, event));
    this.set([]);
  }

  boxes() {
    return [...this.list.querySelectorAll(".t")];
  }

  // The boxes that arrow keys visit: tokens, and characters of several tokens.
  stops() {
    return [...this.list.querySelectorAll(".t, .sign")].filter((box) => !box.closest("[hidden]"));
  }

  isOpen(text) {
    return this.startsOpen !== this.turned.has(text);
  }

  // Show these elements, which contain the boxes. The Tab key reaches the first box.
  set(elements) {
    this.list.replaceChildren(...elements);
    const [first] = this.stops();
    this.list.role = first ? "listbox" : "group";
    if (first) first.tabIndex = 0;
    if (this.said?.isConnected) return;
    if (this.said || !this.detail.textContent) this.detail.textContent = HINT;
    this.said = null; // its box is gone
  }

  // Show rows of boxes, in which a character of several tokens is one box.
  setRows(rows) {
    this.set(rows.map((boxes) => make("div", { class: "row" }, ...wholeCharacters(boxes, this))));
  }

  say(box) {
    this.said = box;
    this.detail.replaceChildren(...(box.pieces ? this.sayCharacter(box) : sayToken(box)));
  }

  sayCharacter({ text, inside, pieces }) {
    const bytes = pieces.map((box) => box.token.bytes).join("");
    const last = pieces.length - 1 + pieces[0].at;
    return [
      make("b", {}, `tokens ${pieces[0].at} to ${last}`), ` are “${signs(text)}”, ${sizeOf(bytes)}`, make("br"),
      `ids ${pieces.map((box) => box.token.id).join(", ")}`, make("br"),
      `Enter or a click ${inside.hidden ? "opens" : "closes"} it`,
    ];
  }

  choose(box) {
    this.say(box);
    for (const one of this.list.querySelectorAll("[tabindex='0']")) {
      one.ariaSelected = "false";
      one.tabIndex = -1;
    }
    box.ariaSelected = "true";
    box.tabIndex = 0;
  }

  press(box) {
    if (!box.pieces) {
      this.onChosen(box);
      return;
    }
    if (!this.turned.delete(box.text)) this.turned.add(box.text);
    box.inside.hidden = !this.isOpen(box.text);
    this.choose(box);
  }

  onKey(box, event) {
    const stops = this.stops();
    const at = stops.indexOf(box);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: stops.length - 1 }[event.key];
    const isPressed = event.key === "Enter" || event.key === " ";
    if (to === undefined && !isPressed) return;
    event.preventDefault();
    if (isPressed) this.press(box);
    else stops[to]?.focus();
  }
}
