// The tab Text: a box to type in, and the tokens of what is typed. With each key the whole text goes
// to the server; the answer has the counts and the tokens around the cursor.

import { post } from "./api.js";
import { $, decimal, make, onClick, showCounts, whole } from "./elements.js";
import { Tab } from "./tab.js";
import { TokenList, tokenBox, wholeCharacters } from "./tokens.js";

export class TextTab extends Tab {
  constructor(page) {
    super(page, "text");
    this.box = $("text-box");
    this.list = new TokenList($("text-tokens"), $("text-detail"), (box) => this.goTo(box.token.start));
    this.box.addEventListener("input", () => this.onInput());
    for (const name of ["keyup", "click"]) this.box.addEventListener(name, () => this.followCursor());
    onClick("text-copy", () => this.copyIds());
  }

  // The text of all tabs.
  get text() {
    return this.box.value.toWellFormed();
  }

  get question() {
    const { encoding, special } = this.page;
    return { encoding, special, text: this.text };
  }

  onInput() {
    $("text-note").hidden = true;
    this.load();
  }

  goTo(offset) {
    this.box.setSelectionRange(offset, offset);
    this.box.blur(); // a browser scrolls to the cursor when the box gets the focus
    this.box.focus();
    this.followCursor();
  }

  // It has asked when the text or a setting changed.
  onShow() {}

  // Show the text that the server was given, and say where it is not what its file has.
  setGiven(file, text) {
    this.box.value = text;
    this.box.setSelectionRange(0, 0);
    this.load();
    if (!file) return;
    const changes = file.is_whole ? [] : ["only the start is shown; streamtok count reads all of it"];
    if (!file.is_utf8) changes.push("invalid UTF-8 became U+FFFD");
    if (text.includes("\r")) changes.push("CR LF became LF");
    $("text-note").hidden = !changes.length;
    $("text-note").textContent = `${file.name}: ${changes.join("; ")}. The counts are those of the text below.`;
  }

  load() {
    const question = { ...this.question, at: this.box.selectionStart };
    return this.asking(async (isLast) => {
      const answer = await post("text", question);
      if (isLast()) this.show(answer);
    });
  }

  clear() {
    this.answer = null;
    this.list.set([]);
    $("text-ids").textContent = $("text-where").textContent = "";
    showCounts($("text-counts"), []);
  }

  show(answer) {
    this.answer = answer;
    const { n_tokens: count, characters, tokens, first } = answer;
    this.list.set(makeRows(tokens, first));
    const isAll = tokens.length === count;
    $("text-where").textContent = isAll ? ""
      : `Tokens ${whole(first)} to ${whole(first + tokens.length - 1)} are shown: those around the cursor.`;
    showCounts($("text-counts"), [
      ["tokens", whole(count)],
      ["characters (code points)", whole(characters)],
      ["bytes", whole(answer.bytes)],
      ["tokens per character", decimal(count / characters)],
      ["characters per token", decimal(characters / count)],
    ]);
    $("text-ids").textContent = tokens.map((token) => token.id).join(", ");
    this.followCursor();
  }

  // Bring the token at the cursor into view, and ask for its surroundings if they are not drawn.
  followCursor() {
    if (!this.answer || document.activeElement !== this.box) return;
    const at = this.box.selectionStart;
    const { tokens, n_tokens: count, first } = this.answer;
    const isBefore = first > 0 && at < tokens[0].start;
    const isAfter = first + tokens.length < count && at > tokens.at(-1).start;
    if (isBefore || isAfter) {
      this.load();
      return;
    }
    const box = this.list.boxes().findLast((one) => one.token.start <= at);
    if (!box) return;
    const { list } = this.list;
    const [place, view] = [box.getBoundingClientRect(), list.getBoundingClientRect()];
    if (place.top < view.top || place.bottom > view.bottom) {
      list.scrollTop += place.top - view.top - list.clientHeight / 3;
    }
  }

  async copyIds() {
    try {
      const { ids } = await post("ids", this.question);
      await navigator.clipboard.writeText(`[${ids.join(", ")}]`);
      $("text-copy").textContent = `${whole(ids.length)} copied`;
      setTimeout(() => { $("text-copy").textContent = "Copy ids"; }, 2000);
    } catch (error) {
      this.page.fail(`The ids were not copied: ${error.message}`);
    }
  }
}

// A row for each line; a token is in the row in which it starts.
function makeRows(tokens, first) {
  const lines = [[]];
  tokens.forEach((token, i) => {
    lines.at(-1).push(tokenBox(token, first + i));
    if (token.bytes.endsWith("0a")) lines.push([]);
  });
  return lines.map((boxes) => make("div", { class: "row" }, ...wholeCharacters(boxes)));
}
