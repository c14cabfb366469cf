// The tab Vocabulary: search tokens, and all about one of them.

import { post } from "./api.js";
import { $, decimal, make, setState, spaced, whole } from "./elements.js";
import { Tab } from "./tab.js";

export class VocabularyTab extends Tab {
  constructor(page) {
    super(page, "vocabulary");
    $("vocabulary-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.search();
    });
  }

  onShow() {
    if (!$("vocabulary-found").children.length) this.clear();
  }

  clear() {
    this.next(); // an answer that is under way is not wanted any more
    $("vocabulary-token").replaceChildren();
    $("vocabulary-found").replaceChildren();
    $("vocabulary-about").textContent = "Type a part of a token and press Search.";
    setState(this.panel, "ready");
  }

  onSettings() {
    $("vocabulary-token").replaceChildren();
    if ($("vocabulary-query").value) this.search();
    else this.clear();
  }

  search() {
    const question = { encoding: this.page.encoding, by: $("vocabulary-by").value, query: $("vocabulary-query").value };
    return this.asking(async (isLast) => {
      const { tokens, is_cut: isCut } = await post("vocabulary/search", question);
      if (!isLast()) return;
      $("vocabulary-about").textContent = isCut
        ? `The first ${tokens.length} tokens` : tokens.length === 1 ? "1 token" : `${tokens.length} tokens`;
      this.show(tokens);
      if (tokens.length) await this.tell(tokens[0].id, false, isLast);
    });
  }

  show(tokens) {
    $("vocabulary-found").replaceChildren(...tokens.map((token) => this.item(token)));
  }

  item(token) {
    const button = make("button", { type: "button" }, `“${token.shown}”`, make("small", {}, ` id ${token.id}`));
    button.addEventListener("click", () => this.asking((isLast) => this.tell(token.id, true, isLast)));
    return make("li", {}, button);
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
      make("ul", { class: "found" }, ...page.neighbours.map((one) => this.item(one))),
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
