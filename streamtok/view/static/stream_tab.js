// The tab Stream: the same text in chunks, naive chunking beside the exact stream, step by step. All
// steps come from the server at once; or, of a live feed, as its chunks arrive.

import { get, post } from "./api.js";
import { $, decimal, make, setState, showCounts, whole } from "./elements.js";
import { Tab } from "./tab.js";
import { appendWhole, fromJson, TokenList, tokenBox, wholeCharacters } from "./tokens.js";

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
    for (const list of [this.naive, this.exact]) list.more = sayMore;
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
    this.isLive = page.about.has_feed;
    if (this.isLive) this.beginLive();
  }

  // A live feed has no other controls than to pause, and no end that is known.
  beginLive() {
    for (const id of ["stream-step", "stream-back", "stream-start", "stream-end"]) $(id).hidden = true;
    $("stream-size").parentElement.hidden = $("stream-size-shown").hidden = true;
    $("stream-note").textContent =
      `Standard input, as it arrives, always with ${this.page.about.first}. Special tokens are plain text here.`;
    $("naive-tokens").dataset.empty = "Waiting for standard input.";
    this.next = 0; // the chunk that is asked for next
    this.open = []; // chunks with ids that are not settled: {number, boxes}
    this.at = 0;
    this.totals = { naive: 0, wrong: 0, exact: 0, broken: 0 };
    this.playLive();
  }

  async playLive() {
    this.timer = true;
    $("stream-play").textContent = "Pause";
    setState(this.panel, "ready");
    try {
      while (this.timer) {
        const open = this.open[0]?.number ?? this.next;
        const news = await get(`feed?from=${this.next}&open=${open}`);
        if (!news.totals) continue;
        this.addNews(news);
        if (news.error) throw new Error(news.error);
        if (news.is_done) break;
      }
    } catch (error) {
      setState(this.panel, "failed");
      this.page.fail(error.message);
    }
    this.timer = null;
    $("stream-play").textContent = "Play";
  }

  addNews(news) {
    for (const [number, wrong] of news.settled) {
      const found = this.open.find((one) => one.number === number);
      found?.boxes.forEach((box, i) => box.classList.toggle("wrong", wrong[i] === true));
    }
    for (const chunk of news.chunks) {
      this.at = chunk.number;
      const boxes = this.add(chunk);
      this.open.push({ number: chunk.number, boxes });
    }
    const settled = new Map(news.settled);
    for (const chunk of news.chunks) settled.set(chunk.number, chunk.naive.map((token) => token.is_wrong));
    this.open = this.open.filter(({ number }) => settled.get(number)?.includes(null));
    this.next = news.number;
    this.totals = news.totals;
    this.naive.refresh();
    this.exact.refresh();
    for (const { list } of [this.naive, this.exact]) list.scrollTop = list.scrollHeight;
    const skipped = news.skipped ? `, ${whole(news.skipped)} of them not shown` : "";
    const last = news.chunks[news.chunks.length - 1];
    $("stream-feed").replaceChildren(
      make("b", {}, `${whole(news.number - Number(news.is_done))} chunks, ${whole(news.bytes)} bytes${skipped}`),
      news.is_done ? ", and the end" : "");
    this.showTotals(last ? last.pending : 0, []);
  }

  sayBytes() {
    const size = Number($("stream-size").value);
    $("stream-size-shown").textContent = size === 1 ? "1 byte" : `${size} bytes`;
  }

  onHide() {
    if (!this.isLive) this.pause();
  }

  load() {
    if (this.isLive) return undefined;
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
    if (this.isLive) {
      this.playLive();
      return;
    }
    if (!this.lanes) return;
    if (this.at >= this.lanes.chunks.length) this.begin();
    $("stream-play").textContent = "Pause";
    this.timer = setInterval(() => {
      this.go(this.at + 1);
      if (this.at >= this.lanes.chunks.length) this.pause();
    }, PACE);
  }

  pause() {
    if (this.timer !== true) clearInterval(this.timer);
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
      const box = tokenBox(fromJson(token), totals.naive, token.is_wrong ? "wrong" : "");
      box.classList.add("new");
      box.token.why = WRONG;
      box.classList.toggle("edge", chunkNumber > 0 && token === chunk.naive[0]);
      totals.naive += 1;
      totals.wrong += Number(token.is_wrong);
      return box;
    });
    this.naive.list.append(...wholeCharacters(boxes));
    const emitted = chunk.exact.map((token) => {
      const box = tokenBox(fromJson(token), totals.exact, token.reason === "certificate" ? "certified" : "");
      box.classList.add("new");
      box.token.why = REASONS[token.reason] ?? "later text cannot change it";
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
    return boxes;
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
    this.showTotals(chunk ? chunk.pending : 0, [["ids of the whole text", whole(lanes.tokens)]]);
    $("stream-step").disabled = $("stream-end").disabled = at >= lanes.chunks.length;
    $("stream-back").disabled = $("stream-start").disabled = at === 0;
  }

  showTotals(pending, more) {
    const { totals } = this;
    showCounts($("stream-counts"), [
      ["ids, naive", whole(totals.naive)],
      ["wrong ids", whole(totals.wrong)],
      ["share of wrong ids", totals.naive ? `${decimal((100 * totals.wrong) / totals.naive, 1)} %` : "–"],
      ["broken chunks", whole(totals.broken)],
      ["ids, exact", whole(totals.exact)],
      ...more,
      ["bytes pending", whole(pending)],
    ]);
  }
}

const WRONG = "wrong: the whole text does not have this id here";
const sayMore = (token, box) => (token.why === WRONG && !box.classList.contains("wrong") ? "" : token.why);

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
