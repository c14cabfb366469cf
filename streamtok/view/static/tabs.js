// Tabs by the ARIA pattern: one stop for Tab, arrows, Home and End move and choose.

export class Tabs {
  constructor(list, onShow) {
    this.tabs = [...list.querySelectorAll("[role=tab]")];
    this.onShow = onShow;
    for (const tab of this.tabs) {
      tab.addEventListener("click", () => this.show(tab));
      tab.addEventListener("keydown", (event) => this.onKey(event));
    }
  }

  onKey(event) {
    const at = this.tabs.indexOf(event.currentTarget);
    const last = this.tabs.length - 1;
    const to = { ArrowLeft: at === 0 ? last : at - 1, ArrowRight: at === last ? 0 : at + 1,
      Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.tabs[to].focus();
    this.show(this.tabs[to]);
  }

  show(chosen) {
    for (const tab of this.tabs) {
      const isChosen = tab === chosen;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = !isChosen;
    }
    chosen.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.onShow(chosen.id.replace("tab-", ""));
  }

  showName(name) {
    const tab = this.tabs.find((one) => one.id === `tab-${name}`);
    if (tab) this.show(tab);
  }
}
