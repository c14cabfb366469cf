// What the tabs share that ask about the text, or about an encoding, and show the answer.

import { $, setState, whole } from "./elements.js";

// A tab has load(), which asks anew, and clear(), which shows nothing.
export class Tab {
  constructor(page, name) {
    this.page = page;
    this.panel = $(`panel-${name}`);
    this.lastQuestion = 0;
  }

  onShow() {
    this.load();
  }

  onSettings() {
    this.load();
  }

  // Answers may come in another order than their questions. This begins a question, and gives a
  // function: is it still the last one, so that its answer is to be shown?
  next() {
    this.lastQuestion += 1;
    const mine = this.lastQuestion;
    return () => mine === this.lastQuestion;
  }

  // work(isLast) asks, and shows the answers as long as nothing else was asked.
  async asking(work) {
    const isLast = this.next();
    setState(this.panel, "busy");
    try {
      await work(isLast);
      if (!isLast()) return;
      this.page.settle();
      setState(this.panel, "ready");
    } catch (error) {
      if (!isLast()) return;
      this.clear();
      setState(this.panel, "failed");
      this.page.fail(error.message);
    }
  }

  // What is shown is what would be asked for: an answer that is under way is not wanted any more.
  stay() {
    this.next();
    setState(this.panel, "ready");
  }

  // The beginning of the text of the tab Text, and the words that say so if it is not all of it.
  beginning(most) {
    const all = this.page.text.text;
    const text = [...all.slice(0, 2 * most)].slice(0, most).join("");
    return [text, text.length < all.length ? `, its first ${whole(most)} characters,` : ""];
  }
}
