// The tab Merges: the pre-tokens of the text, and how the chosen one is merged, step by step.

import { post } from "./api.js";
import { $, make } from "./elements.js";
import { Tab } from "./tab.js";
import { TokenList, tokenBox } from "./tokens.js";

const MOST = 4000; // characters of the text

export class MergesTab extends Tab {
  constructor(page) {
    super(page, "merges");
    this.pretokens = new TokenList($("merges-pretokens"), $("merges-detail"), (box) => this.choose(box));
    this.parts = new TokenList($("merges-parts"), $("merges-detail"));
    this.parts.more = (token) => token.why;
    this.followed = null; // the trace of the chosen pre-token
    this.at = 0;
    this.last = 0;
    $("merges-step").addEventListener("click", () => this.go(this.at + 1));
    $("merges-back").addEventListener("click", () => this.go(this.at - 1));
    $("merges-merge").addEventListener("click", () => this.toMerge());
    $("merges-end").addEventListener("click", () => this.go(this.last));
  }

  clear() {
    this.show(null);
  }

  load() {
    const [text, cut] = this.beginning(MOST);
    const { encoding, special } = this.page;
    $("merges-note").textContent =
      `The text of the tab Text${cut} in pre-tokens, and the merges of byte pairs in one of them.`;
    $("merges-pretokens").replaceChildren();
    return this.asking(async (isLast) => {
      const { pretokens } = await post("pretokens", { encoding, special, text });
      if (!isLast()) return;
      $("merges-pretokens").replaceChildren(...pretokens.map(([bytes, shown, ids, is_special], i) =>
        tokenBox({ noun: "pre-token", id: ids.join(", "), shown, bytes, is_special }, i)));
      this.pretokens.refresh();
      const boxes = this.pretokens.boxes().filter((box) => !box.token.is_special);
      const first = boxes.find((box) => box.token.id.includes(",")) ?? boxes[0];
      if (first) await this.trace(first, isLast);
      else this.show(null);
    });
  }

  choose(box) {
    return this.asking((isLast) => this.trace(box, isLast));
  }

  async trace(box, isLast) {
    for (const one of this.pretokens.boxes()) one.classList.toggle("chosen", one === box);
    const { bytes, is_special: isSpecial } = box.token;
    if (isSpecial) {
      this.show(null);
      $("merges-what").textContent = "A special token is one id: nothing merges.";
      return;
    }
    const trace = await post("merges", { encoding: this.page.encoding, bytes });
    if (isLast()) this.show(trace);
  }

  show(trace) {
    this.followed = trace;
    this.last = trace ? trace.steps.length : 0;
    this.go(0);
  }

  toMerge() {
    let to = this.at;
    while (to < this.last) {
      to += 1;
      if (this.followed.steps[to - 1].kind === "merged") break;
    }
    this.go(to);
  }

  go(to) {
    this.at = Math.max(0, Math.min(to, this.last));
    const step = this.at ? this.followed.steps[this.at - 1] : null;
    const parts = step ? step.parts : this.followed?.start ?? [];
    const heap = step ? step.heap : [];
    $("merges-parts").replaceChildren(...parts.map((part, i) => {
      const token = { id: part.id ?? "none", shown: part.shown, bytes: part.bytes };
      const isNew = step && step.kind === "merged" && part.at === step.candidate.left;
      const box = tokenBox(token, i, isNew ? "new" : "");
      token.why = `at byte ${part.at}, version ${part.version}`;
      return box;
    }));
    this.parts.refresh();
    const byStart = new Map(parts.map((part) => [part.at, part]));
    const shown = (start) => byStart.get(start)?.shown ?? "merged";
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
    const { followed: trace } = this;
    if (!trace) return "";
    const ids = `ids: ${trace.ids.join(", ")}`;
    const number = `Step ${this.at} of ${this.last}: `;
    const found = trace.is_whole_token ? " The engine finds it as one token, without merging." : "";
    if (!this.last) return `No pair merges; ${ids}.${found}`;
    if (!step) return `${this.last} steps, ${trace.merges} ${trace.merges === 1 ? "merge" : "merges"}; ${ids}.${found}`;
    const { rank, left, right } = step.candidate;
    const pair = `bytes ${left} and ${right}, rank ${rank}`;
    const end = this.at === this.last ? ` Finished; ${ids}.` : "";
    const said = { pushed: `Pair added to the heap: ${pair}.`, merged: `Pair merged: ${pair}.`,
      stale: `Pair dropped: ${pair}; already merged.` }[step.kind];
    return number + said + end;
  }
}
