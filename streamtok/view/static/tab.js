// The base class of the tabs: each asks the server about the text, and shows the answer.

import { post } from "./api.js";
import { $, whole } from "./elements.js";

// Subclasses define load(), which asks again.
export class Tab {
  constructor(page, name) {
    this.page = page;
    this.panel = $(`panel-${name}`);
    this.lastQuestion = 0;
  }

  onShow() {
    this.load();
  }

  onHide() {}

  // Ask, and show the answer unless a later question was asked: answers may arrive out of order.
  async ask(path, question, show) {
    this.lastQuestion += 1;
    const mine = this.lastQuestion;
    const isLast = () => mine === this.lastQuestion;
    this.setState("busy");
    try {
      const answer = await post(path, question);
      if (!isLast()) return;
      show(answer);
      this.page.settle();
      this.setState("ready");
      delete this.panel.dataset.failed;
    } catch (error) {
      if (!isLast()) return;
      this.setState("failed");
      this.panel.dataset.failed = "true"; // until the next answer
      this.page.fail(error.message);
    }
  }

  setState(state) {
    this.panel.dataset.state = state;
    this.panel.ariaBusy = String(state === "busy");
  }

  // The text of the Text tab, cut to `most` characters, and a note if it was cut.
  beginning(most) {
    const all = this.page.text.text;
    const text = [...all.slice(0, 2 * most)].slice(0, most).join("");
    return [text, text.length < all.length ? `, its first ${whole(most)} characters,` : ""];
  }
}
