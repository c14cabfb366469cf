// The tab Vocabulary: search tokens, lists of odd ones, and all about one of them.

import { post } from "./api.js";
import { $, decimal, make, setState, spaced, whole } from "./elements.js";
import { Tab } from "./tab.js";

export class VocabularyTab extends Tab {
  constructor(page) {
    super(page, "vocabulary");
    this.start = 0;
    $("vocabulary-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.search();
    });
    $("vocabulary-list").addEventListener("change", () => this.list(0));
    $("vocabulary-earlier").addEventListener("click", () => this.list(this.start - this.size));
    $("vocabulary-later").addEventListener("click", () => this.list(this.start + this.size));
  }

  onShow() {
    if (!$("vocabulary-found").children.length) this.clear();
  }

  clear() {
    this.questions.next(); // an answer that is under way is not wanted any more
    $("vocabulary-token").replaceChildren();
    $("vocabulary-found").replaceChildren();
    $("vocabulary-pages").hidden = true;
    $("vocabulary-about").textContent = "Type a part of a token and press Search, or choose a list.";
    setState(this.panel, "ready");
  }

  onSettings() {
    $("vocabulary-token").replaceChildren();
    if ($("vocabulary-list").value) this.list(0);
    else if ($("vocabulary-query").value) this.search();
    else this.clear();
  }

  search() {
    $("vocabulary-list").value = "";
    $("vocabulary-pages").hidden = true;
    const question = { encoding: this.page.encoding, by: $("vocabulary-by").value, query: $("vocabulary-query").value };
    return this.asking(async (isLast) => {
      const { tokens, is_cut: isCut } = await post("vocabulary/search", question);
      if (!isLast()) return;
      $("vocabulary-about").textContent = isCut
        ? `The first ${tokens.length} tokens` : tokens.length === 1 ? "1 token" : `${tokens.length} tokens`;
      this.show(tokens.map((token) => [token, ""]));
      if (tokens.length) await this.tell(tokens[0].id, false, isLast);
    });
  }

  list(start) {
    const list = $("vocabulary-list").value;
    if (!list) return this.clear();
    this.start = Math.max(0, start);
    return this.asking(async (isLast) => {
      const { count, rows } = await post("vocabulary/list", { encoding: this.page.encoding, list, start: this.start });
      if (!isLast()) return;
      this.size = Math.max(rows.length, 1);
      const last = this.start + rows.length;
      $("vocabulary-about").textContent =
        count ? `${whole(this.start + 1)} to ${whole(last)} of ${whole(count)}` : "None";
      this.show(rows.map((row) => rowOf(list, row)));
      $("vocabulary-pages").hidden = count === rows.length;
      $("vocabulary-earlier").disabled = this.start === 0;
      $("vocabulary-later").disabled = last >= count;
      this.size = 200;
    });
  }

  show(rows) {
    $("vocabulary-found").replaceChildren(...rows.map(([token, more]) =>
      make("li", {}, this.button(token, make("small", {}, ` id ${token.id}${more}`)))));
  }

  button(token, ...more) {
    const button = make("button", { type: "button" }, `“${token.shown}”`, ...more);
    button.addEventListener("click", () => this.asking((isLast) => this.tell(token.id, true, isLast)));
    return button;
  }

  async tell(id, isFocused, isLast) {
    const page = await post("vocabulary/token", { encoding: this.page.encoding, id });
    if (!isLast()) return;
    const { token } = page;
    const scripts = Object.entries(page.scripts)
      .map(([name, share]) => `${name} ${decimal(100 * share, 0)} %`).join(", ");
    const kind = token.is_special ? "a special token" : token.rank === null ? "not made by a merge" : `rank ${token.rank}`;
    const size = token.bytes.length / 2;
    const article = $("vocabulary-token");
    article.replaceChildren(
      make("h2", { class: "token-name" }, `“${token.shown}”`),
      make("p", {}, `id ${token.id}, ${kind}, ${size} ${size === 1 ? "byte" : "bytes"}: ${spaced(token.bytes)}`),
      make("p", {}, page.is_utf8 ? "UTF-8" : "partial UTF-8: a part of a character, or bytes"),
      make("p", {}, `Scripts: ${scripts || "none"}`),
      make("h3", {}, "Merge tree"),
      page.merge_tree.length ? this.tree(page.merge_tree) : make("p", {}, "No merge makes it."),
      make("h3", {}, "Neighbours by id"),
      make("ul", { class: "found" }, ...page.neighbours.map((one) =>
        make("li", {}, this.button(one, make("small", {}, ` id ${one.id}`))))),
    );
    if (isFocused) article.focus({ preventScroll: false });
  }

  tree(nodes) {
    const item = (at) => {
      const node = nodes[at];
      const text = `“${node.shown}”, ${node.parts ? `rank ${node.rank}` : "a byte"}`;
      const parts = node.parts ? [make("ul", {}, ...node.parts.map(item))] : [];
      return make("li", {}, text, ...parts);
    };
    if (nodes.length > 600) return make("p", {}, `A tree of ${whole(nodes.length)} nodes is not drawn.`);
    return make("ul", { class: "tree" }, item(0));
  }
}

function rowOf(list, row) {
  if (list === "unreachable") {
    const note = row.is_utf8 ? "" : ", partial UTF-8";
    return [row, `: its text becomes ${row.becomes.join(", ")}${note}`];
  }
  if (list === "duplicates") {
    const others = row.tokens.slice(1).map((one) => `“${one.shown}” ${one.id}`);
    return [row.tokens[0], ` and ${others.slice(0, 6).join(", ")}${others.length > 6 ? ", …" : ""}`];
  }
  return [row, `, ${row.bytes.length / 2} bytes`];
}
