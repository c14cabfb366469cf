// What the tabs share: each asks about the text, and shows the answer.

import { $, whole } from "./elements.js";

// A tab has load(), which asks anew.
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

  // work(isLast) asks, and shows the answers as long as nothing else was asked: answers may come in
  // another order than their questions.
  async asking(work) {
    this.lastQuestion += 1;
    const mine = this.lastQuestion;
    const isLast = () => mine === this.lastQuestion;
    this.setState("busy");
    try {
      await work(isLast);
      if (!isLast()) return;
      this.page.settle();
      this.setState("ready");
      delete this.panel.dataset.failed;
    } catch (error) {
      if (!isLast()) return;
      this.setState("failed");
      this.panel.dataset.failed = "true"; // until there is an answer again
      this.page.fail(error.message);
    }
  }

  setState(state) {
    this.panel.dataset.state = state;
    this.panel.ariaBusy = String(state === "busy");
  }

  // The beginning of the text of the tab Text, and the words that say so if it is not all of it.
  beginning(most) {
    const all = this.page.text.text;
    const text = [...all.slice(0, 2 * most)].slice(0, most).join("");
    return [text, text.length < all.length ? `, its first ${whole(most)} characters,` : ""];
  }
}
