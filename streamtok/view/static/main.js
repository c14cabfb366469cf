// Starts the page: what the server says about itself, the tabs, and what all of them share.

import { get } from "./api.js";
import { $, make } from "./elements.js";
import { CompareTab } from "./compare_tab.js";
import { StreamTab } from "./stream_tab.js";
import { TextTab } from "./text_tab.js";

class Page {
  constructor(about) {
    this.about = about;
    for (const name of about.encodings) $("encoding").append(make("option", { value: name }, name));
    $("encoding").value = about.first;
    this.text = new TextTab(this);
    this.tabs = {
      text: this.text,
      stream: new StreamTab(this),
      compare: new CompareTab(this),
    };
    for (const id of ["encoding", "special"]) {
      $(id).addEventListener("change", () => this.onSettings());
    }
    window.addEventListener("hashchange", () => this.onHash());
  }

  get encoding() {
    return $("encoding").value;
  }

  get special() {
    return $("special").value;
  }

  // The tab that the URL names is shown: each link of the navigation is an address of its own.
  onHash() {
    const name = location.hash.slice(1) || "text";
    if (!Object.hasOwn(this.tabs, name)) return;
    this.settle();
    this.shown?.onHide();
    this.shown = this.tabs[name];
    for (const one of Object.keys(this.tabs)) {
      $(`panel-${one}`).hidden = one !== name;
      $(`tab-${one}`).ariaCurrent = one === name ? "page" : null;
    }
    this.shown.onShow();
  }

  onSettings() {
    this.settle();
    this.text.load();
    if (this.shown !== this.text) this.shown.load();
  }

  fail(message) {
    $("error").textContent = message;
    $("error").hidden = false;
  }

  settle() {
    $("error").hidden = true;
  }
}

async function start() {
  // The token in the URL has become a cookie. It need not stay in the history.
  if (location.search) history.replaceState(null, "", location.pathname + location.hash);
  try {
    const page = new Page(await get("about"));
    page.text.setGiven(page.about.given, page.about.text);
    page.onHash();
    if (!page.shown) location.hash = "text";
    document.documentElement.dataset.ready = "true";
  } catch (error) {
    $("error").textContent = error.message;
    $("error").hidden = false;
    throw error;
  }
}

start();
