// Starts the page: reads the settings from the server, and makes the tabs and their common parts.

import { get } from "./api.js";
import { ChatTab } from "./chat_tab.js";
import { CompareTab } from "./compare_tab.js";
import { $, make, onClick } from "./elements.js";
import { saveHtml, saveImage } from "./export.js";
import { LanguagesTab } from "./languages_tab.js";
import { MergesTab } from "./merges_tab.js";
import { StreamTab } from "./stream_tab.js";
import { TextTab } from "./text_tab.js";
import { VocabularyTab } from "./vocabulary_tab.js";

class Page {
  constructor(about) {
    this.about = about;
    for (const id of ["encoding", "beside"]) {
      $(id).append(...about.encodings.map((name) => make("option", { value: name }, name)));
    }
    $("encoding").value = about.first;
    $("beside").value = about.first === "o200k_base" ? "cl100k_base" : "o200k_base";
    this.text = new TextTab(this);
    this.tabs = {
      text: this.text,
      chat: new ChatTab(this),
      stream: new StreamTab(this),
      compare: new CompareTab(this),
      merges: new MergesTab(this),
      vocabulary: new VocabularyTab(this),
      languages: new LanguagesTab(this),
    };
    for (const id of ["encoding", "beside", "special"]) {
      $(id).addEventListener("change", () => this.onSettings());
    }
    window.addEventListener("hashchange", () => this.onHash());
    onClick("save-html", () => this.save(saveHtml));
    onClick("save-image", () => this.save(saveImage));
    const nav = document.querySelector("nav");
    // Mark the sides on which tabs are scrolled out of view.
    const sayMore = () => {
      const rest = nav.scrollWidth - nav.clientWidth - nav.scrollLeft;
      nav.dataset.more = `${nav.scrollLeft > 1 ? "left" : ""} ${rest > 1 ? "right" : ""}`;
    };
    nav.addEventListener("scroll", sayMore);
    new ResizeObserver(sayMore).observe(nav);
  }

  get encoding() {
    return $("encoding").value;
  }

  get beside() {
    return $("beside").value;
  }

  get special() {
    return $("special").value;
  }

  // Show the tab that the URL names: each link of the navigation has its own URL.
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
    $(`tab-${name}`).scrollIntoView({ block: "nearest", inline: "center" });
    this.shown.onShow();
  }

  onSettings() {
    this.settle();
    this.text.load();
    if (this.shown !== this.text) this.shown.load();
  }

  async save(save) {
    try {
      await save(this.shown.panel, `${this.encoding}, special tokens: ${$("special").selectedOptions[0].text}`);
      this.settle();
    } catch (error) {
      this.fail(`Nothing was saved: ${error.message}`);
    }
  }

  fail(message) {
    showError(message);
  }

  settle() {
    $("error").hidden = true;
  }
}

function showError(message) {
  $("error").textContent = message;
  $("error").hidden = false;
}

async function start() {
  // The token is now in a cookie, so remove it from the URL and the history.
  if (location.search) history.replaceState(null, "", location.pathname + location.hash);
  try {
    const page = new Page(await get("about"));
    page.text.open(page.about.given, page.about.text);
    page.onHash();
    if (!page.shown) location.hash = "text";
    document.documentElement.dataset.ready = "true";
  } catch (error) {
    showError(error.message);
    throw error;
  }
}

start();
