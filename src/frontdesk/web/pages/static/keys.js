// The keyboard: g and a letter go to a place, j and k move in a list, / searches, ? shows the keys. Whatever else
// has data-key is pressed by that key, but for what changes something without asking, or has data-focuses: that is
// gone to, and pressed with Enter. No other script listens to keys, but for fields that are written in, which name
// theirs with data-keys: so ? shows them all.

import { element, words } from "./page.js";

const TYPED_IN = "input:not([type=checkbox]), textarea, select, [contenteditable]";

const NAME_CHARACTERS = 60;

let isGoing = false;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest?.(TYPED_IN)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") closePanel(event);
  const wasGoing = isGoing;
  isGoing = false;
  if (wasGoing) press(event, document.querySelector(`[data-go="${CSS.escape(event.key)}"]`));
  else if (event.key === "g") isGoing = true;
  else if (event.key === "j" || event.key === "k") move(event, event.key === "j" ? 1 : -1);
  else if (event.key === "/") focusOn(event, document.querySelector("[type=search]"));
  else if (event.key === "?") showKeys(event);
  else if (event.key.length === 1) press(event, shown(`[data-key="${CSS.escape(event.key)}"]`));
});

// Of several, the one that stands in the row that somebody is at.
function shown(what) {
  const found = [...document.querySelectorAll(what)].filter((each) => each.checkVisibility());
  const row = document.activeElement.closest("li");
  return found.find((each) => row?.contains(each)) ?? found[0];
}

function press(event, found) {
  if (!found) return;
  event.preventDefault();
  const { act, sure, focuses } = found.dataset;
  if (found.matches(TYPED_IN) || focuses !== undefined || (act && !sure)) found.focus();
  else found.click();
}

function move(event, step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (!rows.length) return;
  const here = document.activeElement;
  const at = rows.indexOf(here.closest("[data-row]") ?? here.closest("li")?.querySelector("[data-row]"));
  const first = step > 0 ? 0 : rows.length - 1;
  focusOn(event, rows[at < 0 ? first : Math.min(Math.max(at + step, 0), rows.length - 1)]);
}

function focusOn(event, found) {
  if (!found) return;
  event.preventDefault();
  found.focus();
  found.scrollIntoView({ block: "nearest" });
}

function showKeys(event) {
  const dialog = document.getElementById("keys");
  if (!dialog) return;
  event?.preventDefault();
  const own = new Map();
  document.querySelectorAll("main [data-key], main [data-keys]").forEach((each) => {
    const key = each.dataset.key ?? each.dataset.keys;
    if (!own.has(key)) own.set(key, nameOf(each) || words("on_page"));
  });
  dialog.querySelector("[data-own]").replaceChildren(...[...own].flatMap(([key, name]) => listed(key, name)));
  dialog.showModal();
}

function listed(keys, name) {
  const key = element("dt", "");
  keys.split(" ").forEach((each) => key.append(element("kbd", each), " "));
  return [key, element("dd", name)];
}

// What a screen reader would call it.
function nameOf(each) {
  const copy = each.cloneNode(true);
  copy.querySelectorAll("kbd, [aria-hidden=true]").forEach((part) => part.remove());
  const name = each.dataset.name || each.getAttribute("aria-label") || copy.textContent;
  return name.replace(/\s+/g, " ").trim().slice(0, NAME_CHARACTERS);
}

// What covers something is closed by Escape, and whoever opened it is where they were.

function closePanel(event) {
  if (more?.getAttribute("aria-expanded") === "true") fold(false);
  else if (panel()) location.replace("#thread");
  else return;
  event.preventDefault();
}

function panel() {
  const found = document.getElementById(location.hash.slice(1));
  return found?.matches("[data-panel]") ? found : null;
}

let opened = panel();

addEventListener("hashchange", () => {
  const before = opened;
  opened = panel();
  if (opened) opened.focus();
  else if (before) document.querySelector(`[href="#${before.id}"]`)?.focus();
});

document.getElementById("show-keys")?.addEventListener("click", showKeys);

// On a phone four places have room; the others are behind More.
const more = document.getElementById("more");
more?.addEventListener("click", () => fold(more.getAttribute("aria-expanded") !== "true"));

function fold(isOpen) {
  more.setAttribute("aria-expanded", String(isOpen));
  if (!isOpen) more.focus();
}
