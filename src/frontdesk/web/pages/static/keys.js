// The keyboard: g and a letter go to a place, j and k move in a list, / searches, ? shows the keys. Whatever else
// has data-key is pressed by that key.

import { element, words } from "./page.js";

const TYPED_IN = "input, textarea, select, [contenteditable]";

let isGoing = false;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest?.(TYPED_IN)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  const wasGoing = isGoing;
  isGoing = false;
  if (wasGoing) press(event, document.querySelector(`[data-go="${CSS.escape(event.key)}"]`));
  else if (event.key === "g") isGoing = true;
  else if (event.key === "j" || event.key === "k") move(event, event.key === "j" ? 1 : -1);
  else if (event.key === "/") focusOn(event, document.querySelector("[type=search]"));
  else if (event.key === "?") showKeys(event);
  else if (event.key.length === 1) press(event, shown(`[data-key="${CSS.escape(event.key)}"]`));
});

function shown(what) {
  return [...document.querySelectorAll(what)].find((each) => each.checkVisibility());
}

function press(event, found) {
  if (!found) return;
  event.preventDefault();
  if (found.matches(TYPED_IN)) found.focus();
  else found.click();
}

function move(event, step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement.closest("[data-row]"));
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
  const own = dialog.querySelector("[data-own]");
  own.replaceChildren();
  document.querySelectorAll("main [data-key]").forEach((each) => {
    const name = each.getAttribute("aria-label") || each.dataset.name || each.textContent;
    const key = element("dt", "");
    key.append(element("kbd", each.dataset.key));
    own.append(key, element("dd", name.replace(/\s+/g, " ").trim().slice(0, 60) || words("on_page")));
  });
  dialog.showModal();
}

document.getElementById("show-keys")?.addEventListener("click", showKeys);

// On a phone four places have room; the others are behind More.
const more = document.getElementById("more");
more?.addEventListener("click", () => {
  const isOpen = more.getAttribute("aria-expanded") !== "true";
  more.setAttribute("aria-expanded", String(isOpen));
});
