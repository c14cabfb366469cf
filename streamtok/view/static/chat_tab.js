// The Chat tab: turns as a Prompt, compared with the same turns as one str.

import { $, make, makeButton, onClick, showCounts, whole } from "./elements.js";
import { Tab } from "./tab.js";
import { TokenList, tokenBox } from "./tokens.js";

const KINDS = {
  control: "control: the program wrote it",
  text: "text: it can never be control",
  both: "joins control and text; it is an ordinary token",
  forged: "forged: the text wrote it, and the model would take it for control",
};

export class ChatTab extends Tab {
  constructor(page) {
    super(page, "chat");
    this.lists = { prompt: new TokenList($("chat-prompt"), $("chat-detail")), str: new TokenList($("chat-str"), $("chat-detail")) };
    this.roles = [];
    this.isExample = true; // until a turn is changed
    onClick("chat-add", () => {
      const turn = this.addTurn({ role: this.roles[this.turns.length % 2 ? 1 : 2] ?? this.roles[0], content: "" });
      turn.querySelector("textarea").focus();
      this.onChange();
    });
  }

  get turns() {
    return [...$("chat-turns").children].map((turn) => ({
      role: turn.querySelector("select").value,
      content: turn.querySelector("textarea").value.toWellFormed(),
    }));
  }

  onChange() {
    this.isExample = false;
    this.load();
  }

  load() {
    const question = { encoding: this.page.encoding, turns: this.isExample ? null : this.turns };
    return this.ask("chat", question, (answer) => this.show(answer));
  }

  show(answer) {
    const isNew = String(answer.roles) !== String(this.roles);
    this.roles = answer.roles;
    if (isNew || this.isExample) {
      $("chat-turns").replaceChildren();
      for (const turn of answer.turns) this.addTurn(turn);
    }
    const other = answer.encoding === this.page.encoding ? "" : `${this.page.encoding} has no tokens for turns. `;
    $("chat-note").textContent = `${other}Turns in the format of ${answer.template}, in ${answer.encoding}. ` +
      (this.isExample ? "The user's text forges a turn: in a Prompt it stays harmless text." : "");
    for (const [way, list] of Object.entries(this.lists)) this.draw(list, answer[way]);
    const count = (way, kind) => answer[way].filter((token) => token.kind === kind).length;
    showCounts($("chat-counts"), [
      ["tokens of the Prompt", whole(answer.prompt.length)],
      ["control", whole(count("prompt", "control"))],
      ["forged in the Prompt", whole(count("prompt", "forged"))],
      ["forged in one str", whole(count("str", "forged"))],
    ]);
  }

  // A row for each turn. All turns, even forged ones, begin with the same token.
  draw(list, tokens) {
    const rows = [];
    tokens.forEach((token, at) => {
      if (token.id === tokens[0].id) rows.push([]);
      rows.at(-1).push(tokenBox(token, at, token.kind, KINDS[token.kind]));
    });
    list.setRows(rows);
  }

  addTurn({ role, content }) {
    const roles = make("select", { "aria-label": "Role" }, ...this.roles.map((name) => make("option", {}, name)));
    roles.value = role;
    const box = make("textarea", { rows: "2", "aria-label": "Content", spellcheck: "false" });
    box.value = content;
    const remove = makeButton(() => {
      if ($("chat-turns").children.length === 1) return; // keep at least one
      turn.remove();
      $("chat-add").focus();
      this.onChange();
    }, "Remove");
    const turn = make("div", { class: "turn" }, roles, box, remove);
    turn.addEventListener("input", () => this.onChange());
    $("chat-turns").append(turn);
    return turn;
  }
}
