// Starts the page: what the server says about itself, the tabs, and what all of them share.

import { get } from "./api.js";
import { $, make } from "./elements.js";
import { CompareTab } from "./compare_tab.js";
import { FileTab } from "./file_tab.js";
import { LanguagesTab } from "./languages_tab.js";
import { MergesTab } from "./merges_tab.js";
import { StreamTab } from "./stream_tab.js";
import { Tabs } from "./tabs.js";
import { TextTab } from "./text_tab.js";
import { VocabularyTab } from "./vocabulary_tab.js";

class Page {
  constructor(about) {
    this.about = about;
    for (const name of about.encodings) $("encoding").append(make("option", { value: name }, name));
    $("encoding").value = about.first;
    this.text = new TextTab(this);
    this.views = {
      text: this.text,
      stream: new StreamTab(this),
      compare: new CompareTab(this),
      merges: new MergesTab(this),
      languages: new LanguagesTab(this),
      vocabulary: new VocabularyTab(this),
      file: new FileTab(this),
    };
    this.tabs = new Tabs($("tabs"), (name) => this.onTab(name));
    for (const id of ["encoding", "special"]) {
      $(id).addEventListener("change", () => this.onSettings());
    }
  }

  get encoding() {
    return $("encoding").value;
  }

  get special() {
    return $("special").value;
  }

  fail(message) {
    $("error").textContent = message;
    $("error").hidden = false;
  }

  settle() {
    $("error").hidden = true;
  }

  get firstTab() {
    if (this.about.has_feed) return "stream";
    return this.about.given && !this.about.given.is_whole ? "file" : "text";
  }

  // A file that is too large for the tab Text.
  openLargeFile(file) {
    this.tabs.showName("file");
    this.views.file.upload(file);
  }

  onTab(name) {
    this.settle();
    this.shown?.onHide?.();
    this.shown = this.views[name];
    this.shown?.onShow?.();
    history.replaceState(null, "", `#${name}`);
  }

  onSettings() {
    this.settle();
    this.text.reopen();
    this.shown?.onSettings?.();
  }
}

function chooseColours() {
  const stored = localStorage.getItem("streamtok-colours") ?? "";
  $("theme").value = stored;
  document.documentElement.dataset.theme = stored;
  $("theme").addEventListener("change", (event) => {
    document.documentElement.dataset.theme = event.target.value;
    localStorage.setItem("streamtok-colours", event.target.value);
  });
}

async function start() {
  // The token in the URL has become a cookie. It need not stay in the history.
  if (location.search) history.replaceState(null, "", location.pathname + location.hash);
  chooseColours();
  try {
    const page = new Page(await get("about"));
    page.text.set(page.about.text);
    page.tabs.showName(location.hash.slice(1));
    if (!page.shown) page.tabs.showName(page.firstTab);
    document.documentElement.dataset.ready = "true";
  } catch (error) {
    $("error").textContent = error.message;
    $("error").hidden = false;
    throw error;
  }
}

start();
