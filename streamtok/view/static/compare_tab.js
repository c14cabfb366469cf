// The tab Compare: one text in up to four encodings.

import { post, Questions } from "./api.js";
import { $, decimal, make, showCounts, whole } from "./elements.js";
import { fromJson, TokenList, tokenBox } from "./tokens.js";

const MOST = 4;

export class CompareTab {
  constructor(page) {
    this.page = page;
    this.panel = $("panel-compare");
    this.questions = new Questions();
    const start = ["r50k_base", "cl100k_base", "o200k_base"];
    if (!start.includes(page.about.first)) start.unshift(page.about.first);
    for (let i = 0; i < MOST; i += 1) {
      const choice = make("select", { id: `compare-${i}` });
      if (i) choice.append(make("option", { value: "" }, "none"));
      for (const name of page.about.encodings) choice.append(make("option", { value: name }, name));
      choice.value = start[i] ?? "";
      choice.addEventListener("change", () => this.load());
      $("compare-choices").append(make("label", {}, `${i + 1}. `, choice));
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
    const encodings = [...new Set(chosen.filter((name) => name))];
    const most = this.page.about.longest_compared;
    const all = this.page.text.text;
    const question = { encodings, text: all.slice(0, most), special: this.page.special };
    const cut = all.length > most ? `: its first ${whole(most)} characters` : "";
    $("compare-note").textContent = `The text of the tab Text${cut} in up to four encodings. ` +
      "Underlined: where the encodings do not have the same token.";
    const isLast = this.questions.next();
    this.panel.dataset.state = "busy";
    try {
      const found = await post("compare", question);
      if (!isLast()) return;
      this.page.settle();
      this.show(found);
      this.panel.dataset.state = "ready";
    } catch (error) {
      if (!isLast()) return;
      $("compare-columns").replaceChildren();
      this.panel.dataset.state = "failed";
      this.page.fail(error.message);
    }
  }

  show(found) {
    $("compare-columns").replaceChildren(...found.columns.map((column, i) => {
      const title = make("h2", { id: `compare-title-${i}` }, column.encoding);
      const list = make("div", { class: "tokens small", "aria-labelledby": title.id });
      column.tokens.forEach((token, at) => {
        const box = tokenBox(fromJson(token), at, token.is_same ? "" : "differs");
        box.token.why = token.is_same ? "one token in each of these encodings" : "not so in each of these encodings";
        list.append(box);
      });
      const tokens = new TokenList(list, $("compare-detail"));
      tokens.more = (token) => token.why;
      tokens.refresh();
      const cut = column.tokens.length < column.n_tokens
        ? `, the first ${whole(column.tokens.length)} are shown` : "";
      const about = `${whole(column.n_tokens)} tokens, ` +
        `${decimal(column.n_characters / column.n_tokens)} characters per token${cut}`;
      return make("div", {}, title, make("p", { class: "note" }, about), list);
    }));
    showCounts($("compare-counts"), [
      ["boundaries in all", whole(found.agreeing)],
      ["boundaries in some", whole(found.differing)],
      ["tokens that are the same in all", whole(found.n_same)],
    ]);
  }
}
