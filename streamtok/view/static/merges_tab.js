// The tab Merges: how one pre-token is merged, step by step, as the reference did it.

import { post, Questions, Refused } from "./api.js";
import { $, make } from "./elements.js";
import { TokenList, tokenBox } from "./tokens.js";

const MOST_CHOICES = 300;

export class MergesTab {
  constructor(page) {
    this.page = page;
    this.panel = $("panel-merges");
    this.questions = new Questions();
    this.choices = [];
    this.choosing = new Questions();
    this.parts = new TokenList($("merges-parts"), $("merges-detail"));
    this.parts.more = (token) => token.why;
    this.at = 0;
    this.last = 0;
    $("merges-text").addEventListener("input", () => this.load());
    $("merges-choice").addEventListener("change", (event) => {
      if (event.target.selectedIndex < 1) return;
      $("merges-text").value = this.choices[event.target.selectedIndex - 1];
      this.load();
    });
    $("merges-step").addEventListener("click", () => this.go(this.at + 1));
    $("merges-back").addEventListener("click", () => this.go(this.at - 1));
    $("merges-merge").addEventListener("click", () => this.toMerge());
    $("merges-end").addEventListener("click", () => this.go(this.last));
  }

  onShow() {
    this.choose();
    this.load();
  }

  onSettings() {
    this.onShow();
  }

  async choose() {
    const text = this.page.text.text.slice(0, 4000);
    const isLast = this.choosing.next();
    let choices = []; // none if the encoding has no pre-tokens of a text as it is
    try {
      const { pretokens } = await post("pretokens", { encoding: this.page.encoding, text });
      choices = [...new Set(pretokens.filter((one) => one.length > 1))].slice(0, MOST_CHOICES);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
    if (!isLast()) return;
    this.choices = choices;
    $("merges-choice").replaceChildren(
      make("option", {}, this.choices.length ? "choose one" : "none"),
      ...this.choices.map((one) => make("option", {}, one.replaceAll(" ", "·").replaceAll("\n", "⏎"))),
    );
  }

  async load() {
    const question = { encoding: this.page.encoding, pretoken: $("merges-text").value };
    const isLast = this.questions.next();
    this.panel.dataset.state = "busy";
    try {
      const trace = await post("merges", question);
      if (!isLast()) return;
      this.page.settle();
      this.trace = trace;
      this.last = trace.steps.length;
      this.go(0);
      this.panel.dataset.state = "ready";
    } catch (error) {
      if (!isLast()) return;
      this.panel.dataset.state = "failed";
      this.page.fail(error.message);
    }
  }

  toMerge() {
    let to = this.at;
    while (to < this.last) {
      to += 1;
      if (this.trace.steps[to - 1].kind === "merged") break;
    }
    this.go(to);
  }

  go(to) {
    if (!this.trace) return;
    this.at = Math.max(0, Math.min(to, this.last));
    const step = this.at ? this.trace.steps[this.at - 1] : null;
    const parts = step ? step.parts : this.trace.start;
    const heap = step ? step.heap : [];
    $("merges-parts").replaceChildren(...parts.map((part, i) => {
      const token = { id: part.id ?? "none", shown: part.shown, bytes: part.bytes };
      const isNew = step && step.kind === "merged" && part.at === step.candidate.left;
      const box = tokenBox(token, i, isNew ? "new" : "");
      token.why = `place ${part.at}, version ${part.version}`;
      return box;
    }));
    this.parts.refresh();
    const byPlace = new Map(parts.map((part) => [part.at, part]));
    const shown = (place) => byPlace.get(place)?.shown ?? "gone";
    $("merges-heap").tBodies[0].replaceChildren(...heap.map((entry) =>
      make("tr", { class: entry.is_stale ? "stale" : "" },
        make("td", { class: "number" }, entry.rank),
        make("td", { class: "code" }, `${shown(entry.left)} + ${shown(entry.right)}`),
        make("td", {}, `${entry.left}, ${entry.right}`),
        make("td", {}, `${entry.left_version}, ${entry.right_version}`),
        make("td", {}, entry.is_stale ? "stale" : "valid"))));
    $("merges-what").textContent = this.say(step);
    $("merges-step").disabled = $("merges-end").disabled = $("merges-merge").disabled = this.at >= this.last;
    $("merges-back").disabled = this.at === 0;
  }

  say(step) {
    const { trace } = this;
    const ids = `ids: ${trace.ids.join(", ")}`;
    const number = `Step ${this.at} of ${this.last}: `;
    const whole = trace.is_whole_token ? " The engine finds it as one token, without merging." : "";
    if (!this.last) return `No pair of it merges; ${ids}.${whole}`;
    if (!step) return `${this.last} steps, ${trace.merges} of them merges; ${trace.stale} stale candidates.${whole}`;
    const { rank, left, right } = step.candidate;
    const pair = `the parts at ${left} and ${right}, rank ${rank}`;
    const end = this.at === this.last ? ` The end; ${ids}.` : "";
    const said = { pushed: `A candidate is pushed: ${pair}.`, merged: `Merged: ${pair}.`,
      stale: `Dropped: ${pair}; already merged.` }[step.kind];
    return number + said + end;
  }
}
