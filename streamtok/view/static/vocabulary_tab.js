// The tab Vocabulary: tokens that are odd in some way, a search, and all about one token.

import { post } from "./api.js";
import { $, make, whole } from "./elements.js";
import { Tab } from "./tab.js";
import { sizeOf, spaced } from "./tokens.js";

const LONGEST_SHOWN = 18; // characters of a token in a list
const LISTS = {
  unreachable: ["Tokens that no text becomes", "Their own text is encoded as other tokens, given after the arrow."],
  longest: ["The longest tokens", "A model reads each of them as one number."],
  special: ["Special tokens", "Text becomes them only where it is allowed."],
  half: ["Partial UTF-8", "They begin or end inside a character."],
};

export class VocabularyTab extends Tab {
  constructor(page) {
    super(page, "vocabulary");
    $("vocabulary-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.search($("vocabulary-query").value);
    });
    $("vocabulary-query").addEventListener("input", () => {
      if (!$("vocabulary-query").value) this.load();
    });
  }

  onShow() {
    if (this.panel.dataset.failed || this.shown !== this.page.encoding) this.load();
    else this.page.settle();
  }

  load() {
    const { encoding } = this.page;
    const query = $("vocabulary-query").value;
    $("vocabulary-token").replaceChildren();
    if (query) return this.search(query);
    return this.asking(async (isLast) => {
      const { lists } = await post("odd", { encoding });
      if (!isLast()) return;
      this.shown = encoding;
      $("vocabulary-lists").replaceChildren(...Object.entries(LISTS).map(([name, [title, about]]) =>
        this.list(title, about, lists[name])));
    });
  }

  search(query) {
    const { encoding } = this.page;
    return this.asking(async (isLast) => {
      const found = await post("search", { encoding, query });
      if (!isLast()) return;
      this.shown = encoding;
      $("vocabulary-token").replaceChildren();
      const about = found.tokens.length < found.n_tokens ? `The first ${found.tokens.length} are shown.` : "";
      $("vocabulary-lists").replaceChildren(this.list(`Tokens with “${query}”`, about, found));
    });
  }

  list(title, about, { n_tokens: count, tokens }) {
    const heading = count === null ? title : `${title}: ${whole(count)}`;
    return make("div", {}, make("h2", {}, heading), make("p", { class: "note" }, about), this.tokens(tokens));
  }

  tokens(tokens) {
    return make("ul", { class: "list" }, ...tokens.map((token) => {
      const becomes = token.becomes ? ` → ${token.becomes.join(", ")}` : "";
      const button = make("button", { type: "button" },
        make("code", {}, brief(token)), make("small", {}, ` ${token.id}${becomes}`));
      button.addEventListener("click", () => this.tell(token.id));
      return make("li", {}, button);
    }));
  }

  tell(id) {
    return this.asking(async (isLast) => {
      const page = await post("token", { encoding: this.page.encoding, id });
      if (!isLast()) return;
      const { token, merge_tree: nodes } = page;
      const kind = token.is_special ? "a special token" : token.rank === null ? "not made by a merge" : `rank ${token.rank}`;
      const utf8 = page.is_utf8 ? "" : "; partial UTF-8";
      const tree = nodes.length ? make("ul", { class: "tree" }, node(nodes, 0, new Set()))
        : make("p", {}, page.n_nodes ? `A tree of ${whole(page.n_nodes)} nodes is not drawn.` : "No merge makes it.");
      $("vocabulary-token").replaceChildren(
        make("h2", {}, make("code", {}, token.shown)),
        make("p", {}, `id ${token.id}, ${kind}, ${sizeOf(token.bytes)}: ${spaced(token.bytes)}${utf8}`),
        make("h3", {}, "Made of"), tree,
        make("h3", {}, "Neighbours by id"), this.tokens(page.neighbours),
      );
      $("vocabulary-token").focus();
    });
  }
}

// A token and what it is made of, which is drawn once for each token. drawn: bytes of tokens.
function node(nodes, at, drawn) {
  const { bytes, shown, rank, parts } = nodes[at];
  const isNew = parts && !drawn.has(bytes);
  drawn.add(bytes);
  const inside = isNew ? [make("ul", {}, ...parts.map((part) => node(nodes, part, drawn)))] : [];
  return make("li", {}, make("code", {}, shown), parts ? ` rank ${rank}` : "", ...inside);
}

function brief({ shown, bytes }) {
  return shown.length > LONGEST_SHOWN ? `${shown.slice(0, LONGEST_SHOWN)}… ${sizeOf(bytes)}` : shown;
}
