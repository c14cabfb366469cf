// The Text tab: a text box, and the tokens of its text. Each keystroke sends the whole text to the
// server; the answer has the counts and the tokens around the cursor.

import { post } from "./api.js";
import { $, decimal, makeButton, onClick, showCounts, whole } from "./elements.js";
import { GENERAL, SAMPLES } from "./samples.js";
import { Tab } from "./tab.js";
import { TokenList, tokenBox } from "./tokens.js";

export class TextTab extends Tab {
  constructor(page) {
    super(page, "text");
    this.box = $("text-box");
    this.list = new TokenList($("text-tokens"), $("text-detail"), (box) => this.goTo(box.token.start));
    this.box.addEventListener("input", () => this.onInput());
    for (const name of ["keyup", "click"]) this.box.addEventListener(name, () => this.followCursor());
    onClick("text-copy", () => this.copyIds());
    $("text-ids").addEventListener("change", () => this.list.list.classList.toggle("with-ids", $("text-ids").checked));
    $("text-samples").append(...SAMPLES.map((sample) => makeButton(() => this.set(sample.text), sample.name)));
  }

  // The text that all tabs use.
  get text() {
    return this.box.value.toWellFormed();
  }

  get question() {
    const { encoding, special } = this.page;
    return { encoding, special, text: this.text };
  }

  onInput() {
    this.explain();
    this.load();
  }

  // Explain the current sample, or tokens in general.
  explain() {
    const at = SAMPLES.findIndex((sample) => sample.text === this.box.value);
    $("text-note").textContent = SAMPLES[at]?.says ?? GENERAL;
    [...$("text-samples").children].forEach((button, i) => { button.ariaPressed = String(i === at); });
  }

  set(text) {
    this.box.value = text;
    this.box.setSelectionRange(0, 0);
    this.box.scrollTop = 0;
    this.onInput();
  }

  goTo(offset) {
    this.box.setSelectionRange(offset, offset);
    this.box.blur(); // browsers scroll to the cursor only when the box gets the focus
    this.box.focus();
    this.followCursor();
  }

  // Nothing to ask: the tab asks whenever the text or a setting changes.
  onShow() {}

  // Show the text from the server, or a sample, and say how the text differs from its file.
  open(file, text) {
    this.set(file || text ? text : SAMPLES[0].text);
    if (!file) return;
    const changes = file.is_whole ? [] : ["only the start is shown; streamtok count reads all of it"];
    if (!file.is_utf8) changes.push("invalid UTF-8 became U+FFFD");
    if (text.includes("\r")) changes.push("CR LF became LF");
    if (changes.length) {
      $("text-note").textContent = `${file.name}: ${changes.join("; ")}. The counts are those of the text below.`;
    }
  }

  load() {
    const question = { ...this.question, at: this.box.selectionStart, beside: this.page.beside || null };
    return this.ask("text", question, (answer) => this.show(answer, question.beside));
  }

  show(answer, beside) {
    this.answer = answer;
    const { n_tokens: count, n_beside: other, characters, tokens, first } = answer;
    this.list.setRows(linesOf(tokens, first));
    const isAll = tokens.length === count;
    $("text-where").textContent = isAll ? ""
      : `Tokens ${whole(first)} to ${whole(first + tokens.length - 1)} are shown: those around the cursor.`;
    showCounts($("text-counts"), [
      ["tokens", whole(count)],
      ...(beside ? [[`in ${beside}`, `${whole(other)}${percent(other, count)}`]] : []),
      ["characters", whole(characters)],
      ["bytes", whole(answer.bytes)],
      ["characters per token", decimal(characters / count, 2)],
    ]);
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
    const seen = box.closest("[hidden]") ? box.closest(".whole") : box;
    const [place, view] = [seen.getBoundingClientRect(), list.getBoundingClientRect()];
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

// The difference from the chosen encoding: " (+12 %)".
function percent(other, count) {
  if (!count) return "";
  const more = Math.round((100 * (other - count)) / count);
  return ` (${more > 0 ? "+" : more < 0 ? "−" : "±"}${Math.abs(more)} %)`;
}

// A row for each line of the text; a token belongs to the row in which it starts.
function linesOf(tokens, first) {
  const lines = [[]];
  tokens.forEach((token, i) => {
    lines.at(-1).push(tokenBox(token, first + i));
    if (token.bytes.endsWith("0a")) lines.push([]);
  });
  return lines;
}
