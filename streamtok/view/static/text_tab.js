// The tab Text: a box to type in, and the tokens of what is typed. With each key the whole text goes
// to the server; the answer has the counts, the first ids, and the tokens around the cursor.

import { post } from "./api.js";
import { $, decimal, make, showCounts, takeFiles, whole } from "./elements.js";
import { Tab } from "./tab.js";
import { TokenList, tokenBox, wholeCharacters } from "./tokens.js";

export class TextTab extends Tab {
  constructor(page) {
    super(page, "text");
    this.box = $("text-box");
    this.list = new TokenList($("text-tokens"), $("text-detail"), (box) => this.goTo(box.offset));
    this.box.addEventListener("input", () => this.load());
    for (const name of ["keyup", "click"]) this.box.addEventListener(name, () => this.followCursor());
    $("text-copy").addEventListener("click", () => this.copyIds());
    $("chat-add").addEventListener("click", () => this.addTurn());
    $("text-clear").addEventListener("click", () => this.set("", true));
    takeFiles($("text-file"), this.panel, (file) => this.openFile(file));
    this.panel.addEventListener("drop", (event) => this.onDrop(event));
  }

  // The text of all tabs.
  get text() {
    return this.box.value.toWellFormed();
  }

  get question() {
    const { encoding, special } = this.page;
    return { encoding, special, text: this.text };
  }

  set(text, isFocused = false) {
    $("text-note").hidden = true;
    this.box.value = text;
    this.goTo(0, isFocused);
    this.load();
  }

  goTo(offset, isFocused = true) {
    this.box.setSelectionRange(offset, offset);
    if (!isFocused) return;
    this.box.blur(); // a browser scrolls to the cursor when the box gets the focus
    this.box.focus();
    this.followCursor();
  }

  // It has asked when the text or a setting changed.
  onShow() {}

  onSettings() {}

  async openFile(file) {
    if (file.size > this.page.about.longest_text) {
      this.page.fail(`${file.name} is too large for this page: streamtok count takes files of any size.`);
      return;
    }
    // With the byte order mark, which the encoding has ids for, too.
    const data = await file.arrayBuffer();
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(data);
    this.setFile(file.name, text, new TextEncoder().encode(text).length === data.byteLength, true);
  }

  // Show the text of a file, and say where it is not what the file has.
  setFile(name, text, isUtf8, isWhole) {
    this.set(text);
    const changes = isWhole ? [] : ["only the start is shown; streamtok count reads all of it"];
    if (!isUtf8) changes.push("invalid UTF-8 became U+FFFD");
    if (text.includes("\r")) changes.push("CR LF became LF");
    $("text-note").hidden = !changes.length;
    $("text-note").textContent = `${name}: ${changes.join("; ")}. The counts are those of the text below.`;
  }

  // Text from elsewhere; on the box itself, the browser puts it in its own way.
  onDrop(event) {
    const text = event.dataTransfer.getData("text/plain");
    if (event.dataTransfer.files.length || event.target === this.box || !text) return;
    event.preventDefault();
    this.set(text);
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
    this.list.list.replaceChildren();
    this.list.refresh();
    $("text-ids").textContent = $("text-where").textContent = "";
    showCounts($("text-counts"), []);
  }

  show(answer) {
    this.answer = answer;
    const { ids, n_tokens: count, characters, tokens, first } = answer;
    const focused = this.list.list.contains(document.activeElement);
    this.list.list.replaceChildren(...makeRows(tokens, first));
    const active = this.list.refresh();
    if (focused) active?.focus({ preventScroll: true });
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
    $("text-ids").textContent = ids.join(", ") + (count > ids.length ? ", …" : "");
    this.showChat(answer.chat);
    this.followCursor();
  }

  // Bring the token at the cursor into view, and ask for its surroundings if they are not drawn.
  followCursor() {
    if (!this.answer || document.activeElement !== this.box) return;
    const at = this.box.selectionStart;
    const { tokens, n_tokens: count, first } = this.answer;
    const isBefore = first > 0 && at < tokens[0][0];
    const isAfter = first + tokens.length < count && at > tokens[tokens.length - 1][0];
    if (isBefore || isAfter) {
      this.load();
      return;
    }
    const box = this.list.boxes().findLast((one) => one.offset <= at);
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

  showChat(chat) {
    this.chat = chat;
    for (const one of $("chat").children) one.hidden = !chat && one.id !== "chat-name";
    $("chat-name").textContent = chat ? `Chat, ${chat.name}:`
      : `Chat: ${this.page.encoding} has no special tokens for roles; o200k_harmony has.`;
    const roles = Object.keys(chat?.turns ?? {});
    const shown = [...$("chat-role").options].map((one) => one.value);
    if (String(shown) !== String(roles)) $("chat-role").replaceChildren(...roles.map((one) => make("option", {}, one)));
  }

  // A turn at the end of the text, with the cursor in it, and special tokens as such.
  addTurn() {
    const [open, close] = this.chat.turns[$("chat-role").value];
    const { text } = this;
    this.box.value = text + open + close;
    this.goTo(text.length + open.length);
    if (this.page.special === "allow") this.load();
    else this.page.allowSpecial();
  }
}

// A row for each line; a token is in the row in which it starts.
function makeRows(tokens, first) {
  const lines = [[]];
  tokens.forEach(([offset, id, shown, bytes, rank, is_special], i) => {
    const box = tokenBox({ id, shown, bytes, rank, is_special }, first + i);
    box.offset = offset;
    lines[lines.length - 1].push(box);
    if (bytes.endsWith("0a")) lines.push([]);
  });
  return lines.map((boxes) => make("div", { class: "row" }, ...wholeCharacters(boxes)));
}
