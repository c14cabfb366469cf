// The tab Text: a box to type in, and the tokens of what is typed. The server keeps a document of
// the same text: it gets the edits, and answers with the tokens of the rows that are in view.

import { post, Questions } from "./api.js";
import { $, decimal, make, setState, showCounts, whole } from "./elements.js";
import { Rows } from "./rows.js";
import { TextBox } from "./text_box.js";
import { countCharacters, plainLines, TextModel } from "./text_model.js";
import { TokenList, tokenBox, wholeCharacters } from "./tokens.js";

const CHARACTERS = "characters (code points)";

export class TextTab {
  constructor(page) {
    this.page = page;
    this.panel = $("panel-text");
    this.model = new TextModel();
    this.list = new TokenList($("text-tokens"), $("text-detail"), (box) => this.goTo(box));
    this.rows = new Rows($("text-tokens"), () => this.look());
    this.box = new TextBox($("text-box"), this.model,
      (start, stop, text) => this.edit(start, stop, text), () => this.showPart());
    this.documents = new Questions(); // each makes a document at the server
    this.name = null; // of the document
    this.isAsking = false;
    this.isStale = true; // what is drawn is not what it should be
    $("text-copy").addEventListener("click", () => this.copyIds());
    $("chat-add").addEventListener("click", () => this.addTurn());
    $("text-clear").addEventListener("click", () => this.set("", true));
    $("text-earlier").addEventListener("click", () => this.box.turn(-1));
    $("text-later").addEventListener("click", () => this.box.turn(1));
    $("text-file").addEventListener("change", (event) => {
      const [file] = event.target.files;
      if (file) this.openFile(file);
      event.target.value = "";
    });
    this.panel.addEventListener("dragover", (event) => event.preventDefault());
    this.panel.addEventListener("drop", (event) => this.onDrop(event));
  }

  // The text of all tabs.
  get text() {
    return this.model.text;
  }

  set(text, isFocused = false) {
    $("text-note").hidden = true;
    this.model.set(plainLines(text));
    this.rows.set(this.model.rows);
    this.rows.list.scrollTop = 0;
    this.box.show(0, isFocused);
    this.reopen();
  }

  // The document at the server is made anew: another text, encoding or policy.
  reopen() {
    this.documents.next(); // one that is on its way has the old text or encoding
    this.name = null;
    this.model.takeEdits();
    this.look();
  }

  edit(start, stop, text) {
    const { model } = this;
    const room = this.page.about.max_text - model.size + model.characters(stop) - model.characters(start);
    if (text.length > room && countCharacters(text, 0, text.length) > room) {
      this.page.fail(`The text was not added: at most ${whole(this.page.about.max_text)} characters fit here. ` +
        "The tab File takes files of any size.");
      this.box.show(start);
      return false;
    }
    const [first, removed, added] = this.model.replace(start, stop, text);
    this.rows.change(first, removed, this.model.rows.slice(first, first + added));
    this.showPart();
    this.rows.reveal(this.model.rowAt(Math.min(start + text.length, this.model.text.length)));
    this.look();
    return true;
  }

  async openFile(file) {
    if (file.size > this.page.about.max_text) {
      this.page.openLargeFile(file);
      return;
    }
    // With the byte order mark, which the encoding has ids for, too.
    const data = await file.arrayBuffer();
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(data);
    this.setFile(file.name, text, new TextEncoder().encode(text).length === data.byteLength);
  }

  // Show the text of a file, and say where it is not what the file has.
  setFile(name, text, isUtf8) {
    this.set(text);
    const changes = isUtf8 ? [] : ["invalid UTF-8 became U+FFFD"];
    if (text.includes("\r")) changes.push("CR LF became LF");
    $("text-note").hidden = !changes.length;
    $("text-note").textContent = `${name}: ${changes.join("; ")}. The counts are those of the text below.`;
  }

  onDrop(event) {
    const [file] = event.dataTransfer.files;
    const text = event.dataTransfer.getData("text/plain");
    if (!file && (event.target === $("text-box") || !text)) return; // the browser's own way
    event.preventDefault();
    if (file) this.openFile(file);
    else this.set(text);
  }

  look() {
    this.isStale = true;
    setState(this.panel, "busy");
    this.ask();
  }

  async ask() {
    if (this.isAsking) return;
    this.isAsking = true;
    let failure = null;
    while (this.isStale) {
      failure = null;
      try {
        await this.askOnce();
      } catch (error) {
        this.name = null;
        failure = error;
      }
    }
    this.isAsking = false;
    setState(this.panel, failure ? "failed" : "ready");
    if (!failure) return;
    this.showNothing([]);
    this.page.fail(failure.message);
  }

  async askOnce() {
    this.isStale = false;
    const { model } = this;
    const [first, last] = this.rows.visible();
    const starts = model.rowStarts();
    const begin = starts[first];
    const view = [model.characters(begin), model.characters(starts[last])];
    let answer;
    if (this.name === null) {
      model.takeEdits();
      const { encoding, special } = this.page;
      const isLast = this.documents.next();
      answer = await post("text/open", { encoding, special, text: model.text, view });
      if (!isLast()) return; // reopen() has been called, and look() with it
      this.name = answer.document;
    } else {
      const edits = model.takeEdits();
      const { size } = model;
      try {
        answer = await post("text/edit", { document: this.name, edits, size, view });
      } catch (error) {
        if (error.status !== 409) throw error;
        this.name = null; // the server has forgotten it, or was restarted
        this.isStale = true;
        return;
      }
    }
    if (this.isStale && (model.edits.length || this.name === null)) return; // typed on meanwhile
    this.show(answer, first, last, begin);
  }

  show(answer, first, last, begin) {
    this.page.settle();
    if (answer.refused !== undefined) {
      this.page.fail(`${answer.refused} Choose “allowed” or “plain text” above, or change the text.`);
      this.showNothing([["tokens", "–"], [CHARACTERS, whole(answer.characters)]]);
      return;
    }
    const focused = this.list.list.contains(document.activeElement);
    this.rows.draw(first, this.makeRows(answer, first, last, begin));
    const active = this.list.refresh();
    if (focused) active?.focus({ preventScroll: true });
    showCounts($("text-counts"), [
      ["tokens", whole(answer.count)],
      [CHARACTERS, whole(answer.characters)],
      ["bytes", whole(answer.bytes)],
      ["tokens per character", decimal(answer.count / answer.characters)],
      ["characters per token", decimal(answer.characters / answer.count)],
    ]);
    const more = answer.count > answer.ids.length ? ", …" : "";
    $("text-ids").textContent = answer.ids.join(", ") + more;
    this.showChat(answer.chat);
    this.panel.dispatchEvent(new CustomEvent("drawn"));
  }

  showNothing(counts) {
    this.rows.draw(0, []);
    this.list.refresh();
    $("text-ids").textContent = "";
    showCounts($("text-counts"), counts);
  }

  async copyIds() {
    try {
      const { ids } = await post("text/ids", { document: this.name ?? "" });
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
    const end = this.model.text.length;
    if (!this.edit(end, end, open + close)) return;
    this.box.show(end + open.length, true);
    this.page.allowSpecial();
  }

  // The elements of the rows; a token is in the row in which it starts. An element that is drawn
  // already and has the same tokens is taken again.
  makeRows(answer, first, last, begin) {
    const starts = this.model.rowStarts();
    const known = new Map([...this.rows.drawn.children].map((row) => [row.key, row]));
    const rows = [];
    const { tokens } = answer;
    let next = 0;
    for (let i = first; i < last; i += 1) {
      const start = starts[i] - begin;
      const stop = i + 1 < last ? starts[i + 1] - begin : Infinity;
      const from = next;
      let key = "";
      for (; next < tokens.length && tokens[next][0] < stop; next += 1) {
        key += `${tokens[next][2]} ${tokens[next][0] - start},`;
      }
      let row = known.get(key);
      if (row) known.delete(key);
      else {
        row = make("div", { class: "row" });
        row.key = key;
        row.append(...wholeCharacters(tokens.slice(from, next).map(([offset, , id, shown, bytes, rank, isSpecial], at) => {
          const box = tokenBox({ id, shown, bytes, rank, isSpecial }, at);
          box.offset = offset - start;
          return box;
        })));
      }
      row.first = answer.first + from;
      row.start = starts[i];
      rows.push(row);
    }
    return rows;
  }

  goTo(box) {
    this.box.show(Math.max(0, box.closest(".row").start + box.offset), true);
  }

  showPart() {
    const { box } = this;
    $("text-part").hidden = box.isWhole;
    const { model } = this;
    $("text-where").textContent = box.hasAll ? `All ${whole(model.size)} characters are selected`
      : `In the box: characters ${whole(model.characters(box.start))} to ${whole(model.characters(box.stop))} of ${whole(model.size)}`;
    $("text-earlier").disabled = box.start === 0;
    $("text-later").disabled = box.stop === this.model.text.length;
  }
}
