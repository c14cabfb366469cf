// The Merges tab: how a pre-token of the text is merged. The result is hidden until the last step,
// so that readers can guess it.

import { $, make, onClick, whole } from "./elements.js";
import { Tab } from "./tab.js";
import { TokenList, tokenBox } from "./tokens.js";

export class MergesTab extends Tab {
  constructor(page) {
    super(page, "merges");
    this.pretokens = new TokenList($("merges-pretokens"), $("merges-detail"), (box) => this.follow(box.at));
    this.parts = new TokenList($("merges-parts"), $("merges-detail"));
    onClick("merges-step", () => this.go(this.at + 1));
    onClick("merges-back", () => this.go(this.at - 1));
    onClick("merges-end", () => this.go(this.last));
    this.show({ states: [] });
  }

  load() {
    return this.follow(null);
  }

  // chosen: the index of a pre-token; null for the first that becomes several tokens.
  follow(chosen) {
    const [text, cut] = this.beginning(this.page.about.longest_merges);
    $("merges-note").textContent = `The pattern cuts the text of the tab Text${cut} into pre-tokens; in each of them ` +
      "the pair with the lowest rank is merged, again and again. Guess what is left at the end.";
    return this.ask("merges", { encoding: this.page.encoding, text, chosen }, (answer) => {
      this.pretokens.set(answer.pretokens.map((one, i) => tokenBox(one, i, i === answer.chosen ? "chosen" : "")));
      this.show(answer);
      if (chosen !== null) this.pretokens.boxes()[chosen].focus();
    });
  }

  show(answer) {
    this.states = answer.states;
    this.isWholeToken = answer.is_whole_token;
    this.last = Math.max(this.states.length - 1, 0);
    this.go(0);
  }

  go(to) {
    this.at = Math.max(0, Math.min(to, this.last));
    const { parts = [], candidates = [] } = this.states[this.at] ?? {};
    const before = this.states[this.at - 1];
    const [rank, left] = before?.candidates[0] ?? [];
    this.parts.set(parts.map((part, i) => tokenBox(part, i, part.at === left ? "new" : "", `at byte ${part.at}`)));
    const name = (all, start) => `“${all.find((part) => part.at === start).shown}”`;
    const pair = (all, [, first, second]) => `${name(all, first)} + ${name(all, second)}`;
    $("merges-pairs").replaceChildren(...candidates.map((one) => make("li", {}, `rank ${one[0]}: ${pair(parts, one)}`)));
    if (!candidates.length) $("merges-pairs").append(make("li", {}, "none"));
    const isEnd = this.at === this.last;
    const said = [];
    if (before) said.push(`Merge ${this.at}: ${pair(before.parts, before.candidates[0])}, rank ${rank}.`);
    else if (parts.length) said.push(isEnd ? "No pair merges." : `${whole(parts.length)} single bytes, before the first merge.`);
    if (isEnd && parts.length) {
      said.push(`The answer: ${parts.length === 1 ? "1 token" : `${parts.length} tokens`}, ids ${parts.map((part) => part.id).join(", ")}.`);
      if (this.isWholeToken) said.push("The engine finds it as a whole, without merging.");
    }
    $("merges-what").textContent = said.join(" ");
    $("merges-step").disabled = $("merges-end").disabled = isEnd;
    $("merges-back").disabled = this.at === 0;
  }
}
