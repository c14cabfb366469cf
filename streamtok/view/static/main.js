// Starts the page: what the server says about itself, the tabs, and what all of them share.

import { get, postBytes } from "./api.js";
import { $, make, setState, takeFiles } from "./elements.js";
import { CompareTab } from "./compare_tab.js";
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
    this.kept = readKept();
    $("encoding").value = about.encodings.includes(this.kept.encoding) ? this.kept.encoding : about.first;
    if (this.kept.special) $("special").value = this.kept.special;
    this.text = new TextTab(this);
    this.views = {
      text: this.text,
      stream: new StreamTab(this),
      compare: new CompareTab(this),
      merges: new MergesTab(this),
      languages: new LanguagesTab(this),
      vocabulary: new VocabularyTab(this),
    };
    this.tabs = new Tabs($("tabs"), (name) => this.onTab(name));
    for (const id of ["encoding", "special"]) {
      $(id).addEventListener("change", () => this.onSettings());
    }
    takeFiles($("vocabulary-file"), document.querySelector("header"), (file) => this.loadVocabulary(file));
    window.addEventListener("pagehide", () => this.keep());
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

  allowSpecial() {
    if (this.special === "allow") return;
    $("special").value = "allow";
    this.onSettings();
  }

  async loadVocabulary(file) {
    if (file.size > this.about.max_vocabulary) {
      this.fail(`${file.name} is too large: a vocabulary may have ${this.about.max_vocabulary >> 20} MiB here.`);
      return;
    }
    setState(document.body, "busy");
    try {
      const { name } = await postBytes(`encoding?name=${encodeURIComponent(file.name)}`, await file.arrayBuffer());
      if (![...$("encoding").options].some((one) => one.value === name)) {
        for (const list of document.querySelectorAll("#encoding, select.encodings")) {
          list.append(make("option", { value: name }, name));
        }
        this.views.languages.addEncoding(name, false);
      }
      $("encoding").value = name;
      this.onSettings();
    } catch (error) {
      this.fail(error.message);
    }
    setState(document.body, "ready");
  }

  // The text as it is after a reload, or as the server gave it.
  firstText() {
    const { given, text } = this.about;
    if (this.kept.text !== undefined && this.kept.given === (given?.name ?? null)) this.text.set(this.kept.text);
    else this.text.setFile(given?.name, text, given?.is_utf8 ?? true, given?.is_whole ?? true);
  }

  keep() {
    const { encoding, special, about } = this;
    const kept = { text: this.text.text, given: about.given?.name ?? null, encoding, special };
    try {
      sessionStorage.setItem(KEPT, JSON.stringify(kept));
    } catch {
      sessionStorage.removeItem(KEPT); // too large for the browser
    }
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
    this.text.load();
    this.shown?.onSettings?.();
  }
}

const KEPT = `streamtok-text ${location.pathname}`;

function readKept() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT)) ?? {};
  } catch {
    return {};
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
    page.firstText();
    page.tabs.showName(location.hash.slice(1));
    if (!page.shown) page.tabs.showName("text");
    document.documentElement.dataset.ready = "true";
  } catch (error) {
    $("error").textContent = error.message;
    $("error").hidden = false;
    throw error;
  }
}

start();
