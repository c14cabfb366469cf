// The Vocabulary tab: lists of odd tokens, a search, and the details of one token.

import { $, make, makeButton, whole } from "./elements.js";
import { Tab } from "./tab.js";
import { sizeOf, spaced } from "./tokens.js";

const LONGEST_SHOWN = 18; // characters of a token in a list
const LISTS = {
  unreachable: ["Unreachable tokens", "Their own text is encoded as the ids after the arrow."],
  longest: ["The longest tokens", "A model reads each of them as one number."],
  half: ["Partial UTF-8", "They begin or end inside a character."],
};

export class VocabularyTab extends Tab {
  constructor(page) {
    super(page, "vocabulary");
    $("vocabulary-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.load();
    });
    $("vocabulary-query").addEventListener("input", () => {
      if (!$("vocabulary-query").value) this.load();
    });
  }

  onShow() {
    if (this.panel.dataset.failed || this.shown !== this.page.encoding) this.load();
    else this.page.settle();
  }

  // Show the results of the search, or the odd tokens if the query is empty.
  load() {
    const { encoding } = this.page;
    const query = $("vocabulary-query").value;
    const show = (...lists) => {
      this.shown = encoding;
      $("vocabulary-token").replaceChildren();
      $("vocabulary-lists").replaceChildren(...lists);
    };
    if (!query) {
      return this.ask("odd", { encoding }, (lists) => {
        show(...Object.entries(LISTS).map(([name, [title, about]]) => this.list(title, about, lists[name])));
      });
    }
    return this.ask("search", { encoding, query }, (found) => {
      const about = found.tokens.length < found.n_tokens ? `The first ${found.tokens.length} are shown.` : "";
      show(this.list(`Tokens with “${query}”`, about, found));
    });
  }

  list(title, about, { n_tokens: count, tokens }) {
    const heading = make("h2", {}, `${title}: ${whole(count)}`);
    return make("div", {}, heading, make("p", { class: "note" }, about), this.tokens(tokens));
  }

  tokens(tokens) {
    return make("ul", { class: "list" }, ...tokens.map((token) => {
      const becomes = token.becomes ? ` → ${token.becomes.join(", ")}` : "";
      const about = make("small", {}, ` ${token.id}${becomes}`);
      const shown = make("code", {}, brief(token));
      // A token without an id becomes the ids of its bytes.
      return make("li", {}, token.id === null ? shown : makeButton(() => this.tell(token.id), shown, about));
    }));
  }

  tell(id) {
    return this.ask("token", { encoding: this.page.encoding, id }, ({ token, parts, neighbours, is_utf8: isUtf8 }) => {
      const kind = token.is_special ? "a special token" : token.rank === null ? "not made by a merge" : `rank ${token.rank}`;
      $("vocabulary-token").replaceChildren(
        make("h2", {}, make("code", {}, token.shown)),
        make("p", {}, `id ${token.id}, ${kind}, ${sizeOf(token.bytes)}: ${spaced(token.bytes)}${isUtf8 ? "" : "; partial UTF-8"}`),
        make("h3", {}, "Merged from"), parts.length ? this.tokens(parts) : make("p", {}, "No merge makes it."),
        make("h3", {}, "Neighbours by id"), this.tokens(neighbours),
      );
      $("vocabulary-token").focus();
    });
  }
}

function brief({ shown, bytes }) {
  return shown.length > LONGEST_SHOWN ? `${shown.slice(0, LONGEST_SHOWN)}… ${sizeOf(bytes)}` : shown;
}
