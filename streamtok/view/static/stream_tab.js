// The tab Stream: the same text in chunks, naive chunking beside the exact stream, step by step. All
// steps come from the server at once.

import { post } from "./api.js";
import { $, decimal, make, showCounts, whole } from "./elements.js";
import { Tab } from "./tab.js";
import { appendWhole, TokenList, tokenBox, wholeCharacters } from "./tokens.js";

const PACE = 250; // milliseconds between two steps
const MOST = 1500; // boxes of a lane that are kept
const REASONS = {
  closed: "its pre-token is complete: later text cannot change it",
  certificate: "its pre-token is open, but a certificate shows that later text cannot change it",
  end: "end of the stream",
};

export class StreamTab extends Tab {
  constructor(page) {
    super(page, "stream");
    this.naive = new TokenList($("naive-tokens"), $("stream-detail"));
    this.exact = new TokenList($("exact-tokens"), $("stream-detail"));
    for (const list of [this.naive, this.exact]) list.more = (token) => token.why;
    this.timer = null;
    this.made = ""; // what the steps are of
    $("stream-play").addEventListener("click", () => (this.timer ? this.pause() : this.play()));
    $("stream-step").addEventListener("click", () => this.go(this.at + 1));
    $("stream-back").addEventListener("click", () => this.go(this.at - 1));
    $("stream-start").addEventListener("click", () => this.go(0));
    $("stream-end").addEventListener("click", () => this.go(this.lanes.chunks.length));
    $("stream-size").addEventListener("input", () => this.sayBytes());
    $("stream-size").addEventListener("change", () => this.load());
    this.sayBytes();
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
    const made = JSON.stringify(question);
    if (made === this.made) return this.stay();
    return this.asking(async (isLast) => {
      const lanes = await post("stream", question);
      if (!isLast()) return;
      this.made = made;
      this.lanes = lanes;
      $("stream-note").textContent =
        `The text of the tab Text${cut} in chunks. Special tokens are plain text here.` +
        (text ? "" : " Type a text in the tab Text first.");
      this.begin();
    });
  }

  clear() {
    this.made = "";
    this.lanes = { chunks: [], tokens: 0 };
    this.begin();
  }

  begin() {
    this.at = 0;
    this.totals = { naive: 0, wrong: 0, exact: 0, broken: 0 };
    for (const list of [this.naive.list, this.exact.list]) list.replaceChildren();
    this.show();
  }

  play() {
    if (!this.lanes) return;
    if (this.at >= this.lanes.chunks.length) this.begin();
    $("stream-play").textContent = "Pause";
    this.timer = setInterval(() => {
      this.go(this.at + 1);
      if (this.at >= this.lanes.chunks.length) this.pause();
    }, PACE);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    $("stream-play").textContent = "Play";
  }

  go(to) {
    if (!this.lanes) return;
    const last = Math.max(0, Math.min(to, this.lanes.chunks.length));
    if (last < this.at) this.begin();
    while (this.at < last) {
      this.add(this.lanes.chunks[this.at]);
      this.at += 1;
    }
    this.show();
  }

  add(chunk) {
    const { totals } = this;
    for (const box of this.panel.querySelectorAll(".t.new")) box.classList.remove("new");
    this.exact.list.querySelector(".pending")?.remove();
    const chunkNumber = this.at;
    const boxes = chunk.naive.map((token) => {
      const box = tokenBox({ ...token }, totals.naive, token.is_wrong ? "wrong" : "");
      box.classList.add("new");
      box.token.why = token.is_wrong ? "wrong: the whole text does not have this id here" : "";
      box.classList.toggle("edge", chunkNumber > 0 && token === chunk.naive[0]);
      totals.naive += 1;
      totals.wrong += Number(token.is_wrong);
      return box;
    });
    this.naive.list.append(...wholeCharacters(boxes));
    const emitted = chunk.exact.map((token) => {
      const box = tokenBox({ ...token }, totals.exact, token.reason === "certificate" ? "certified" : "");
      box.classList.add("new");
      box.token.why = REASONS[token.reason];
      totals.exact += 1;
      return box;
    });
    if (emitted.length) appendWhole(this.exact.list, emitted);
    totals.broken += Number(chunk.is_broken);
    for (const { list } of [this.naive, this.exact]) {
      while (list.children.length > MOST) list.firstElementChild.remove();
    }
    if (chunk.pending) {
      const box = make("span", { class: "pending" }, chunk.pending_shown);
      box.title = `${chunk.pending} bytes are held back`;
      this.exact.list.append(box);
    }
  }

  show() {
    const { lanes, at } = this;
    const chunk = at ? lanes.chunks[at - 1] : null;
    this.naive.refresh();
    this.exact.refresh();
    for (const { list } of [this.naive, this.exact]) list.scrollTop = list.scrollHeight;
    const number = lanes.chunks.length - 1; // the last one is the end of the text
    const feed = [make("b", {}, `${Math.min(at, number)} of ${number} chunks`)];
    if (chunk && at <= number) feed.push(", the last one: ", make("code", {}, chunk.shown));
    else if (chunk) feed.push(", and the end of the text");
    $("stream-feed").replaceChildren(...feed);
    $("stream-why").textContent = chunk ? whyOf(chunk) : "";
    $("stream-step").disabled = $("stream-end").disabled = at >= lanes.chunks.length;
    $("stream-back").disabled = $("stream-start").disabled = at === 0;
    const { totals } = this;
    showCounts($("stream-counts"), [
      ["ids, naive", whole(totals.naive)],
      ["wrong ids", whole(totals.wrong)],
      ["share of wrong ids", totals.naive ? `${decimal((100 * totals.wrong) / totals.naive, 1)} %` : "–"],
      ["broken chunks", whole(totals.broken)],
      ["ids, exact", whole(totals.exact)],
      ["ids of the whole text", whole(lanes.tokens)],
      ["bytes pending", whole(chunk ? chunk.pending : 0)],
    ]);
  }
}

function whyOf(chunk) {
  const counts = { closed: 0, certificate: 0, end: 0 };
  for (const token of chunk.exact) counts[token.reason] += 1;
  const ids = (count) => (count === 1 ? "1 id" : `${count} ids`);
  const parts = [];
  if (counts.closed) parts.push(`${ids(counts.closed)}, pre-token complete`);
  if (counts.certificate) {
    parts.push(`${ids(counts.certificate)} of an open pre-token, by a certificate`);
  }
  if (counts.end) parts.push(`${ids(counts.end)}, end of the text`);
  const held = chunk.pending ? ` ${chunk.pending} bytes wait for later text.` : "";
  return parts.length ? `Emitted: ${parts.join("; ")}.${held}` : `Nothing emitted yet.${held}`;
}
