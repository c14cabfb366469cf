// The tab Merges: the pre-tokens of the text, and how the chosen one is merged, step by step.

import { post } from "./api.js";
import { $, make, onClick } from "./elements.js";
import { Tab } from "./tab.js";
import { TokenList, tokenBox } from "./tokens.js";

const MOST = 4000; // characters of the text

export class MergesTab extends Tab {
  constructor(page) {
    super(page, "merges");
    this.pretokens = new TokenList($("merges-pretokens"), $("merges-detail"), (box) => this.choose(box));
    this.parts = new TokenList($("merges-parts"), $("merges-detail"));
    onClick("merges-step", () => this.go(this.at + 1));
    onClick("merges-back", () => this.go(this.at - 1));
    onClick("merges-merge", () => this.toMerge());
    onClick("merges-end", () => this.go(this.last));
    this.clear();
  }

  clear() {
    this.show(null);
  }

  load() {
    const [text, cut] = this.beginning(MOST);
    const { encoding, special } = this.page;
    $("merges-note").textContent =
      `The text of the tab Text${cut} in pre-tokens, and the merges of byte pairs in one of them.`;
    this.pretokens.set([]);
    return this.asking(async (isLast) => {
      const { pretokens } = await post("pretokens", { encoding, special, text });
      if (!isLast()) return;
      this.pretokens.set(pretokens.map((one, i) =>
        tokenBox({ ...one, noun: "pre-token", id: one.ids.join(", ") }, i)));
      const boxes = this.pretokens.boxes().filter((box) => !box.token.is_special);
      const first = boxes.find((box) => box.token.ids.length > 1) ?? boxes[0];
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
    const trace = await post("merges", { encoding: this.page.encoding, pretoken: bytes });
    if (isLast()) this.show(trace);
  }

  // trace: of the chosen pre-token; null: there is none.
  show(trace) {
    this.followed = trace;
    this.last = trace ? trace.steps.length : 0;
    this.go(0);
  }

  toMerge() {
    const next = this.followed.steps.findIndex((step, i) => i >= this.at && step.kind === "merged");
    this.go(next < 0 ? this.last : next + 1);
  }

  go(to) {
    this.at = Math.max(0, Math.min(to, this.last));
    const step = this.at ? this.followed.steps[this.at - 1] : null;
    const parts = step ? step.parts : this.followed?.start ?? [];
    this.parts.set(parts.map((part, i) => {
      const isNew = step?.kind === "merged" && part.at === step.candidate.left;
      const why = `at byte ${part.at}, version ${part.version}`;
      return tokenBox({ id: part.id ?? "none", shown: part.shown, bytes: part.bytes }, i, isNew ? "new" : "", why);
    }));
    const byStart = new Map(parts.map((part) => [part.at, part]));
    const shown = (start) => byStart.get(start)?.shown ?? "merged";
    $("merges-heap").tBodies[0].replaceChildren(...(step?.heap ?? []).map((entry) =>
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
    const found = trace.is_whole_token ? " The engine finds it as one token, without merging." : "";
    if (!this.last) return `No pair merges; ${ids}.${found}`;
    if (!step) return `${this.last} steps, ${trace.merges} ${trace.merges === 1 ? "merge" : "merges"}; ${ids}.${found}`;
    const { rank, left, right } = step.candidate;
    const pair = `bytes ${left} and ${right}, rank ${rank}`;
    const said = { pushed: `Pair added to the heap: ${pair}.`, merged: `Pair merged: ${pair}.`,
      stale: `Pair dropped: ${pair}; already merged.` }[step.kind];
    const end = this.at === this.last ? ` Finished; ${ids}.` : "";
    return `Step ${this.at} of ${this.last}: ${said}${end}`;
  }
}
