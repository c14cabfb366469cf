// The tab Compare: one text in up to four encodings.

import { post, Questions } from "./api.js";
import { $, decimal, make, setState, showCounts, whole } from "./elements.js";
import { firstCharacters } from "./text_model.js";
import { fromJson, TokenList, tokenBox, wholeCharacters } from "./tokens.js";

const MOST = 4;

export class CompareTab {
  constructor(page) {
    this.page = page;
    this.panel = $("panel-compare");
    this.questions = new Questions();
    const start = ["r50k_base", "cl100k_base", "o200k_base"].filter((name) => name !== page.about.first);
    for (let i = 1; i < MOST; i += 1) {
      const choice = make("select", { id: `compare-${i}`, class: "encodings" }, make("option", { value: "" }, "none"));
      for (const name of page.about.encodings) choice.append(make("option", { value: name }, name));
      choice.value = start[i - 1] ?? "";
      choice.addEventListener("change", () => this.load());
      $("compare-choices").append(make("label", {}, i === 1 ? "with " : "and ", choice));
    }
  }

  onShow() {
    this.load();
  }

  onSettings() {
    this.load();
  }

  async load() {
    const chosen = [...$("compare-choices").querySelectorAll("select")].map((one) => one.value);
    const encodings = [...new Set([this.page.encoding, ...chosen.filter((name) => name)])];
    const most = this.page.about.longest_compared;
    const all = this.page.text.text;
    const text = firstCharacters(all, most);
    const question = { encodings, text, special: this.page.special };
    const cut = all.length > text.length ? `, its first ${whole(most)} characters,` : "";
    $("compare-note").textContent = `The text of the tab Text${cut} in ${this.page.encoding} and up to three others. ` +
      "Underlined: tokens that differ." + (all ? "" : " Type a text in the tab Text to compare.");
    const isLast = this.questions.next();
    setState(this.panel, "busy");
    try {
      const found = await post("compare", question);
      if (!isLast()) return;
      this.page.settle();
      this.show(found);
      setState(this.panel, "ready");
    } catch (error) {
      if (!isLast()) return;
      for (const id of ["compare-columns", "compare-counts", "compare-detail"]) $(id).replaceChildren();
      setState(this.panel, "failed");
      this.page.fail(error.message);
    }
  }

  show(found) {
    $("compare-columns").replaceChildren(...found.columns.map((column, i) => {
      const title = make("h2", { id: `compare-title-${i}` }, column.encoding);
      const list = make("div", { class: "tokens small", "aria-labelledby": title.id });
      list.append(...wholeCharacters(column.tokens.map((token, at) => {
        const box = tokenBox(fromJson(token), at, token.is_same ? "" : "differs");
        box.token.why = token.is_same ? "the same token in each encoding" : "not a token here in each encoding";
        return box;
      })));
      const tokens = new TokenList(list, $("compare-detail"));
      tokens.more = (token) => token.why;
      tokens.refresh();
      const cut = column.tokens.length < column.n_tokens
        ? `, first ${whole(column.tokens.length)} shown` : "";
      const about = `${whole(column.n_tokens)} tokens, ` +
        `${decimal(column.n_characters / column.n_tokens)} characters per token${cut}`;
      return make("div", {}, title, make("p", { class: "note" }, about), list);
    }));
    showCounts($("compare-counts"), [
      ["shared boundaries", whole(found.agreeing)],
      ["differing boundaries", whole(found.differing)],
      ["shared tokens", whole(found.n_same)],
    ]);
  }
}
