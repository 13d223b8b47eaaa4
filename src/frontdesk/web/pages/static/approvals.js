// The list of what waits, and the page on which one request is decided. What is to be sent, and where, stands in
// data attributes, put there by the server.

import { disarm, isArmed, isMeant, paint, require } from "./arming.js";
import { keeping, refresh } from "./live.js";
import "./keys.js";
import { attempt, element, say, send, words } from "./page.js";

const TOO_SOON = words("too_soon");
const TOLD_MILLISECONDS = 3000;

// Nobody approves what they have not seen to its end, what is hidden and was not looked at, or one of the ten
// without typing its target. The server checks the last two; this tells it beforehand.

let seen = null;
let isAtEnd = false;

function done(what) {
  const chip = document.querySelector(`[data-todo="${what}"]`);
  if (!chip) return;
  chip.classList.replace("wait", "ok");
  chip.querySelector("span").textContent = "✓";
}

require((button) => {
  if (button.dataset.approves !== "true") return true;
  const target = document.getElementById("target");
  const todo = (what) => document.querySelector(`[data-todo="${what}"]`);
  return !((todo("look") && !seen) || (todo("end") && !isAtEnd) || (target && !target.value.trim()));
});

document.addEventListener("input", (event) => {
  if (event.target.id === "target") paint();
});

function watchEnd() {
  const end = document.getElementById("end");
  const bar = document.querySelector(".bar");
  if (!end || !bar || isAtEnd) return;
  // What is behind the bar is not seen.
  const margin = `0px 0px -${bar.offsetHeight}px 0px`;
  const observer = new IntersectionObserver(
    (found) => {
      if (!found.some((each) => each.isIntersecting)) return;
      observer.disconnect();
      isAtEnd = true;
      done("end");
      paint();
    },
    { rootMargin: margin },
  );
  observer.observe(end);
}

watchEnd();

function decide(button) {
  const asked = button.closest("[data-decision]");
  const reason = document.getElementById("reason");
  if (reason.required) reason.closest("details").open = true;
  if (!reason.reportValidity()) return;
  attempt(async () => {
    try {
      const told = await send(asked.dataset.decision, {
        approves: button.dataset.approves === "true",
        digest: asked.dataset.digest,
        reason: reason.value.trim() || null,
        target: document.getElementById("target")?.value.trim() || null,
        seen,
        t: asked.dataset.link || null,
      });
      say(told.status === "approved" ? "ok" : "", told.message);
    } finally {
      await refresh();
    }
  });
}

function reveal(button) {
  attempt(async () => {
    const told = await send(button.dataset.reveal, { t: button.dataset.link || null });
    document.getElementById("action").replaceChildren(...told.lines.map(line));
    document.querySelectorAll("[data-headline]").forEach((each) => {
      each.replaceChildren(...told[each.dataset.headline].map(part));
    });
    const details = document.getElementById("details");
    details.open = true;
    details.scrollIntoView();
    document.getElementById("hidden").remove();
    seen = told.seen;
    disarm();
    done("look");
    say("", told.message);
  });
}

function line(told) {
  return element("p", told.text, `d${told.depth}${told.is_ours ? " folded" : ""}`);
}

function part(told) {
  if (!told.role) return document.createTextNode(told.text);
  return element(told.role === "ours" ? "span" : "mark", told.text, told.role);
}

// Several can be denied together, one after the other. Approving is one at a time.

const picked = () => [...document.querySelectorAll(".pick input:checked")];

function count() {
  const button = document.getElementById("deny-picked");
  if (!button) return;
  button.hidden = picked().length === 0;
  button.querySelector("b").textContent = words("deny_selected", { count: picked().length });
}

function denyPicked() {
  attempt(async () => {
    const troubles = [];
    const boxes = picked();
    for (const { dataset } of boxes) {
      const said = { approves: false, digest: dataset.digest, t: null };
      await send(dataset.decision, said).catch((error) => troubles.push(error.message));
    }
    boxes.forEach((box) => (box.checked = false));
    say(troubles.length ? "bad" : "", [words("denied", { count: boxes.length - troubles.length }), ...troubles].join(" "));
    await refresh();
  });
}

function lift({ dataset }) {
  attempt(async () => {
    await send(dataset.lift, { requester: dataset.requester });
    say("ok", words("can_ask_again"));
    await refresh();
  });
}

keeping((replace) => {
  const typed = ["reason", "target"].map((id) => [id, document.getElementById(id)?.value]);
  const opened = document.getElementById("reason")?.closest("details").open;
  const ids = picked().map((box) => box.id);
  const waited = Boolean(document.querySelector("[data-decision]"));
  replace();
  if (waited && !document.querySelector("[data-decision]")) sayDecided();
  typed.forEach(([id, value]) => {
    const field = document.getElementById(id);
    if (field && value) field.value = value;
  });
  if (opened && document.getElementById("reason")) document.getElementById("reason").closest("details").open = true;
  ids.forEach((id) => {
    const box = document.getElementById(id);
    if (box) box.checked = true;
  });
  if (seen) done("look");
  if (isAtEnd) done("end");
  count();
});

// Decided by somebody else, or by time: those who do not see it hear of it.
function sayDecided() {
  const standing = document.querySelector("#standing p")?.textContent.trim().replace(/\s+/g, " ");
  if (standing && !document.getElementById("outcome").textContent) say("", standing);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-arms]");
  if (!button) return;
  if (!isMeant(event, button)) {
    event.preventDefault();
    if (!isArmed()) sayTooSoon();
  } else if (button.dataset.approves) decide(button);
  else if (button.dataset.reveal) reveal(button);
  else if (button.dataset.lift) lift(button);
  else if (button.id === "deny-picked") denyPicked();
});

function sayTooSoon() {
  say("", TOO_SOON);
  setTimeout(() => {
    if (document.getElementById("outcome").textContent === TOO_SOON) say("", "");
  }, TOLD_MILLISECONDS);
}

document.addEventListener("change", count);
count();
