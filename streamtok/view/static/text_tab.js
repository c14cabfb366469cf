// The tab Text: a box to type in, and the tokens of what is typed. The server keeps a document of
// the same text: it gets the edits, and answers with the tokens of the rows that are in view.

import { post, Questions } from "./api.js";
import { $, decimal, make, showCounts, whole } from "./elements.js";
import { Rows } from "./rows.js";
import { TextBox } from "./text_box.js";
import { plainLines, TextModel } from "./text_model.js";
import { TokenList, tokenBox } from "./tokens.js";

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
    const room = this.page.about.max_text - (this.model.text.length - (stop - start));
    if (text.length > room) {
      this.page.fail(`A text may have ${whole(this.page.about.max_text)} characters here. ` +
        "The tab File takes files of any size.");
      this.box.show(start);
      return;
    }
    const [first, removed, added] = this.model.replace(start, stop, text);
    this.rows.change(first, removed, this.model.rows.slice(first, first + added));
    this.showPart();
    this.rows.reveal(this.model.rowAt(Math.min(start + text.length, this.model.text.length)));
    this.look();
  }

  async openFile(file) {
    if (file.size > this.page.about.max_text) {
      this.page.openLargeFile(file);
      return;
    }
    this.set(await file.text());
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
    this.panel.dataset.state = "busy";
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
    this.panel.dataset.state = failure ? "failed" : "ready";
    if (failure) this.page.fail(failure.message);
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
      this.rows.draw(first, []);
      this.list.refresh();
      showCounts($("text-counts"), [["tokens", "–"], ["characters", whole(answer.characters)]]);
      return;
    }
    const focused = this.list.list.contains(document.activeElement);
    this.rows.draw(first, this.makeRows(answer, first, last, begin));
    const active = this.list.refresh();
    if (focused) active?.focus({ preventScroll: true });
    showCounts($("text-counts"), [
      ["tokens", whole(answer.count)],
      ["characters", whole(answer.characters)],
      ["bytes", whole(answer.bytes)],
      ["tokens per character", decimal(answer.count / answer.characters)],
      ["characters per token", decimal(answer.characters / answer.count)],
    ]);
    this.panel.dispatchEvent(new CustomEvent("drawn"));
  }

  // The elements of the rows; a token stands in the row in which it starts. An element that is drawn
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
        row.append(...tokens.slice(from, next).map(([place, , id, shown, bytes, rank, isSpecial], at) => {
          const box = tokenBox({ id, shown, bytes, rank, isSpecial }, at);
          box.offset = place - start;
          return box;
        }));
      }
      row.first = answer.first + from;
      row.start = starts[i];
      rows.push(row);
    }
    return rows;
  }

  goTo(box) {
    this.box.show(Math.max(0, box.parentNode.start + box.offset), true);
  }

  showPart() {
    const { box } = this;
    $("text-part").hidden = box.isWhole;
    $("text-where").textContent =
      `In the box: characters ${whole(box.start)} to ${whole(box.stop)} of ${whole(this.model.text.length)}`;
    $("text-earlier").disabled = box.start === 0;
    $("text-later").disabled = box.stop === this.model.text.length;
  }
}
