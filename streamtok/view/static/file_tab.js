// The tab File: a file of any size, sent or read block by block, with what is known of it so far.

import { post, postBytes } from "./api.js";
import { barChart } from "./chart.js";
import { $, decimal, make, setState, showCounts, spaced, takeFiles, whole } from "./elements.js";

const BLOCK = 4 << 20;
const LAST = 24; // class of the longest lines

export class FileTab {
  constructor(page) {
    this.page = page;
    this.panel = $("panel-file");
    this.run = 0; // a run that is not the last one stops
    const { given } = page.about;
    if (given) {
      $("file-given").textContent = `Read ${given.name}`;
      $("file-given").hidden = false;
      $("file-given").addEventListener("click", () => this.readGiven());
    }
    takeFiles($("file-upload"), this.panel, (file) => this.upload(file));
    $("file-stop").addEventListener("click", () => this.stop());
  }

  onShow() {
    if (this.page.about.given && !this.run) this.readGiven();
    else if (this.encoding && this.encoding !== this.page.encoding) this.again();
    else if (!this.run) $("file-state").textContent = "Upload a file, or drop one here.";
  }

  onSettings() {
    this.onShow();
  }

  stop() {
    this.run += 1;
    $("file-stop").disabled = true;
    $("file-state").textContent += " Stopped.";
    setState(this.panel, "stopped");
  }

  readGiven() {
    this.again = () => this.readGiven();
    const { name } = this.page.about.given;
    return this.work(name, "given", async (job, isOn) => {
      for (;;) {
        const report = await post("file/read", { job });
        if (!isOn()) return;
        this.show(report, name, report.read, report.size);
        if (report.is_done) return;
      }
    });
  }

  upload(file) {
    this.again = () => this.upload(file);
    return this.work(file.name, "upload", async (job, isOn) => {
      for (let at = 0; at < file.size; at += BLOCK) {
        const block = await file.slice(at, at + BLOCK).arrayBuffer();
        const report = await postBytes(`file/feed?job=${encodeURIComponent(job)}`, block);
        if (!isOn()) return;
        this.show(report, file.name, report.n_bytes, file.size);
      }
      const report = await post("file/finish", { job });
      if (isOn()) this.show(report, file.name, file.size, file.size);
    });
  }

  async work(name, source, read) {
    const run = (this.run += 1);
    const isOn = () => run === this.run;
    this.encoding = this.page.encoding;
    this.clear();
    setState(this.panel, "busy");
    this.page.settle();
    $("file-stop").disabled = false;
    $("file-state").textContent = name;
    $("file-progress").hidden = false;
    $("file-progress").removeAttribute("value");
    try {
      const { job } = await post("file/begin", { encoding: this.encoding, source });
      await read(job, isOn);
      if (!isOn()) return;
      setState(this.panel, "ready");
    } catch (error) {
      if (!isOn()) return;
      setState(this.panel, "failed");
      this.page.fail(error.message);
    }
    $("file-stop").disabled = true;
    $("file-progress").hidden = true;
  }

  clear() {
    $("file-counts").replaceChildren();
    $("file-figure").hidden = $("file-tables").hidden = true;
  }

  show(report, name, read, size) {
    $("file-tables").hidden = false;
    if (size) {
      $("file-progress").max = size;
      $("file-progress").value = read;
    }
    $("file-state").textContent = report.is_done
      ? `${name}: finished, with ${this.encoding}.`
      : `${name}: ${whole(Math.floor(read / 1e6))}${size ? ` of ${whole(Math.ceil(size / 1e6))}` : ""} MB`;
    const { lines } = report;
    showCounts($("file-counts"), [
      ["tokens, whole file", whole(report.tokens)],
      ["bytes", whole(report.n_bytes)],
      ["lines", whole(lines)],
      ["tokens per line", decimal(report.line_tokens / lines, 2)],
      ["invalid UTF-8 bytes", whole(report.bad_bytes)],
      ["lines with special tokens", whole(report.refused_lines)],
      ["share of lines with special tokens", lines ? `${decimal((100 * report.refused_lines) / lines, 2)} %` : "–"],
    ]);
    const last = report.histogram.findLastIndex((count) => count > 0);
    $("file-figure").hidden = last < 0;
    if (last >= 0) {
      const counts = report.histogram.slice(0, last + 1);
      const rows = counts.map((count, i) => ({ name: classOf(i), values: [count] }));
      const said = rows.map((row) => `${row.name}: ${row.values[0]}`).join(", ");
      $("file-chart").replaceChildren(barChart(rows, whole, `Lines by token count: ${said}`));
    }
    $("file-most").tBodies[0].replaceChildren(...report.most.map((one) => make("tr", {},
      make("td", { class: "number" }, whole(one.tokens)), make("td", { class: "number" }, whole(one.line)),
      make("td", { class: "number" }, whole(one.start)), make("td", { class: "code" }, one.shown))));
    $("file-bad").tBodies[0].replaceChildren(
      ...report.bad_places.map(([at, bytes]) => make("tr", {},
        make("td", { class: "number" }, whole(at)), make("td", { class: "code" }, `invalid UTF-8: ${spaced(bytes)}`))),
      ...report.refused_places.map(([at, token]) => make("tr", {},
        make("td", { class: "number" }, whole(at)), make("td", { class: "code" }, token))),
    );
  }
}

// "0", "1", "2–3", "4–7", ...
const classOf = (i) =>
  i < 2 ? String(i) : i === LAST ? `${whole(2 ** (i - 1))} or more` : `${whole(2 ** (i - 1))}–${whole(2 ** i - 1)}`;
