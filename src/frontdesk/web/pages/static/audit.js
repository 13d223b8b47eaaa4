// The verification of the log: how far it is, line by line, and what it found.

import "./site.js";
import { isMeant } from "./arming.js";
import { attempt, element, hear, say, words } from "./page.js";

const verdict = document.getElementById("verdict");

function show({ rows, of, done, whole, fault, contradictions, anchor }) {
  if (!done) return showProgress(rows, of);
  const told = element("p", verdictOf(rows, whole, fault), whole ? "note ok" : "note bad");
  const found = contradictions.map(({ id, why }) => element("li", words("audit_contradiction", { id, why })));
  const list = element("ul", "");
  list.append(...found);
  const kept = anchor ? element("p", "", "soft") : "";
  if (anchor) kept.append(`${words("audit_anchor")} `, element("code", anchor));
  verdict.replaceChildren(told, ...(found.length ? [list] : []), ...(kept ? [kept] : []));
  say("", "");
}

function verdictOf(rows, whole, fault) {
  if (fault) return `✕ ${words("audit_fault", { number: fault.number, change: fault.change, why: fault.why, rows })}`;
  if (!whole) return `✕ ${words("audit_unlike", { rows })}`;
  return rows ? `✓ ${words("audit_whole", { rows })}` : words("audit_empty");
}

function showProgress(rows, of) {
  let bar = verdict.querySelector("progress");
  if (!bar) {
    bar = element("progress", "");
    bar.setAttribute("aria-label", words("audit_progress", { rows: 0, of }));
    verdict.replaceChildren(bar, element("p", "", "soft"));
  }
  bar.max = Math.max(of, 1);
  bar.value = rows;
  verdict.querySelector("p").textContent = words("audit_progress", { rows, of });
}

document.getElementById("verify")?.addEventListener("click", (event) => {
  const button = event.currentTarget;
  if (!isMeant(event, button)) return say("", words("too_soon"));
  attempt(async () => {
    let last = null;
    await hear(button.dataset.verify, {}, (told) => show((last = told)));
    if (!last?.done) throw new Error(words("no_answer"));
  });
});
