// The Compare tab: one text in up to four encodings.

import { $, decimal, make, showCounts, whole } from "./elements.js";
import { Tab } from "./tab.js";
import { TokenList, tokenBox } from "./tokens.js";

const MOST = 4;

export class CompareTab extends Tab {
  constructor(page) {
    super(page, "compare");
    const start = ["r50k_base", "cl100k_base"].filter((name) => ![page.encoding, page.beside].includes(name));
    // The first two encodings are chosen in the header of the page.
    for (let i = 2; i < MOST; i += 1) {
      const choice = make("select", { id: `compare-${i}` }, make("option", { value: "" }, "none"));
      for (const name of page.about.encodings) choice.append(make("option", { value: name }, name));
      choice.value = start[i - 2] ?? "";
      choice.addEventListener("change", () => this.load());
      $("compare-choices").append(make("label", {}, "also ", choice));
    }
  }

  load() {
    const chosen = [...$("compare-choices").querySelectorAll("select")].map((one) => one.value);
    const encodings = [...new Set([this.page.encoding, this.page.beside, ...chosen])].filter((name) => name);
    const [text, cut] = this.beginning(this.page.about.longest_text);
    const question = { encodings, text, special: this.page.special };
    $("compare-note").textContent = `The text of the tab Text${cut} in ${encodings.join(", ")}. ` +
      "Underlined: tokens that differ." + (text ? "" : " Type a text in the tab Text to compare.");
    return this.ask("compare", question, (found) => this.show(found));
  }

  show(found) {
    $("compare-columns").replaceChildren(...found.columns.map((column, i) => {
      const title = make("h2", { id: `compare-title-${i}` }, column.encoding);
      const list = make("div", { class: "tokens small", "aria-labelledby": title.id });
      const tokens = new TokenList(list, $("compare-detail"));
      tokens.setRows([column.tokens.map((token, at) => (
        token.is_same ? tokenBox(token, at, "", "the same token in each encoding")
          : tokenBox(token, at, "differs", "not a token here in each encoding")))]);
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
