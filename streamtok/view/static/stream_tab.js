// The Stream tab: naive chunking beside the exact stream of the same text, step by step. The server
// sends all steps in one answer.

import { $, decimal, make, onClick, showCounts, whole } from "./elements.js";
import { Tab } from "./tab.js";
import { TokenList, tokenBox, wholeCharacters } from "./tokens.js";

const PACE = 250; // milliseconds between two steps
const MOST = 1500; // tokens of a lane to draw: the last ones
// Why ids are emitted: an explanation for several ids, and one for a single id.
const REASONS = {
  closed: ["pre-token complete", "its pre-token is complete: later text cannot change it"],
  certificate: ["certificate of an open pre-token", "its pre-token is open, but a certificate shows that later text cannot change it"],
  end: ["end of the text", "end of the stream"],
};

export class StreamTab extends Tab {
  constructor(page) {
    super(page, "stream");
    this.naive = new TokenList($("naive-tokens"), $("stream-detail"), undefined, true);
    this.exact = new TokenList($("exact-tokens"), $("stream-detail"), undefined, true);
    this.timer = null;
    onClick("stream-play", () => (this.timer ? this.pause() : this.play()));
    onClick("stream-step", () => this.go(this.at + 1));
    onClick("stream-back", () => this.go(this.at - 1));
    onClick("stream-end", () => this.go(this.last));
    $("stream-size").addEventListener("input", () => this.sayBytes());
    $("stream-size").addEventListener("change", () => this.load());
    this.show({ chunks: [], tokens: 0 });
  }

  sayBytes() {
    const size = Number($("stream-size").value);
    $("stream-size-shown").textContent = size === 1 ? "1 byte" : `${size} bytes`;
  }

  onHide() {
    this.pause();
  }

  load() {
    this.pause();
    const [text, cut] = this.beginning(this.page.about.longest_stream);
    const question = {
      encoding: this.page.encoding, text, chunk_size: Number($("stream-size").value),
    };
    return this.ask("stream", question, (lanes) => {
      $("stream-note").textContent =
        `The text of the tab Text${cut} in chunks. Special tokens are plain text here.` +
        (text ? "" : " Type a text in the tab Text first.");
      this.show(lanes);
    });
  }

  show(lanes) {
    this.lanes = lanes;
    this.last = lanes.chunks.length;
    this.go(0);
  }

  play() {
    if (this.at >= this.last) this.go(0);
    $("stream-play").textContent = "Pause";
    this.timer = setInterval(() => {
      this.go(this.at + 1);
      if (this.at >= this.last) this.pause();
    }, PACE);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    $("stream-play").textContent = "Play";
  }

  go(to) {
    this.at = Math.max(0, Math.min(to, this.last));
    const { at, last, lanes } = this;
    const seen = lanes.chunks.slice(0, at);
    const chunk = seen.at(-1);
    const [naive, exact] = ["naive", "exact"].map((lane) => (
      seen.flatMap((one) => one[lane].map((token) => ({ token, chunk: one })))));
    // Mark the tokens of the last chunk as new.
    const isNew = (one) => (one.chunk === chunk ? "new" : "");
    const draw = (list, lane, box) => {
      const first = Math.max(lane.length - MOST, 0);
      list.set(wholeCharacters(lane.slice(first).map((one, i) => box(one, first + i)), list));
    };
    draw(this.naive, naive, (one, i) => {
      const isEdge = one.chunk !== seen[0] && one.token === one.chunk.naive[0];
      const classes = `${isNew(one)} ${one.token.is_wrong ? "wrong" : ""} ${isEdge ? "edge" : ""}`;
      return tokenBox(one.token, i, classes, one.token.is_wrong ? "wrong: the whole text does not have this id here" : "");
    });
    draw(this.exact, exact, (one, i) => {
      const { reason } = one.token;
      return tokenBox(one.token, i, `${isNew(one)} ${reason}`, REASONS[reason][1]);
    });
    if (chunk?.pending) {
      const title = `${chunk.pending} bytes are held back`;
      this.exact.list.append(make("span", { class: "pending", title }, chunk.pending_shown));
    }
    for (const { list } of [this.naive, this.exact]) list.scrollTop = list.scrollHeight;
    const number = Math.max(0, last - 1); // without the flush at the end of the text
    const feed = [make("b", {}, `${Math.min(at, number)} of ${number} chunks`)];
    if (chunk && at <= number) feed.push(", the last one: ", make("code", {}, chunk.shown));
    else if (chunk) feed.push(", and the end of the text");
    $("stream-feed").replaceChildren(...feed);
    $("stream-why").textContent = chunk ? whyOf(chunk) : "";
    $("stream-step").disabled = $("stream-end").disabled = at >= last;
    $("stream-back").disabled = at === 0;
    const wrong = naive.filter((one) => one.token.is_wrong).length;
    showCounts($("stream-counts"), [
      ["ids, naive", whole(naive.length)],
      ["wrong ids", whole(wrong)],
      ["share of wrong ids", `${decimal((100 * wrong) / naive.length, 1)} %`],
      ["broken chunks", whole(seen.filter((one) => one.is_broken).length)],
      ["ids, exact", whole(exact.length)],
      ["ids of the whole text", whole(lanes.tokens)],
      ["bytes pending", whole(chunk?.pending ?? 0)],
    ]);
  }
}

function whyOf(chunk) {
  const parts = [];
  for (const [reason, [said]] of Object.entries(REASONS)) {
    const count = chunk.exact.filter((token) => token.reason === reason).length;
    if (count) parts.push(`${count} ${count === 1 ? "id" : "ids"}, ${said}`);
  }
  const held = chunk.pending ? ` ${chunk.pending} bytes wait for later text.` : "";
  return parts.length ? `Emitted: ${parts.join("; ")}.${held}` : `Nothing emitted yet.${held}`;
}
