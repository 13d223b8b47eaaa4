// Buttons and forms that change something: what is sent, and where, stands in data attributes, put there by the
// server. Each press has a key of its own, so that it counts once, however often it has to be sent.

import { isMeant } from "./arming.js";
import { refresh } from "./live.js";
import { attempt, say, send, words } from "./page.js";

const KEY_BYTES = 16;

export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// A page that does more with an answer than to say it listens to "acted".
export function act(from, said) {
  const { act: path, sure, next } = from.dataset;
  if (sure && !confirm(sure)) return;
  const key = newKey();
  attempt(async () => {
    const told = await send(path, said, undefined, key);
    if (next) return location.assign(next);
    say(...outcomeOf(told));
    if (!told.refused) from.dispatchEvent(new CustomEvent("acted", { bubbles: true, detail: told }));
    if (told.is_over === false) hearOut(path, told.turn_id).then(refresh);
    await refresh();
  });
}

// How it looks and what is said: what was done, what is still to come, or that there was nothing to do.
function outcomeOf(told) {
  if (told.is_over === false) return ["wait", told.waits ? words("waits") : told.message];
  if (told.refused) return ["wait", told.refused];
  if (told === 0 || told.done === false) return ["wait", words("nothing_to_do")]; // somebody else was faster
  if (typeof told === "number") return ["ok", words("done_with", { count: told })];
  return ["ok", told.message || words("done")];
}

// What has to wait is told of when it has happened; what the agent answers stands in the transcript, in its session.
export function hearOut(path, turn) {
  const stream = new EventSource(`${path.split("/v1/")[0]}/v1/turns/${turn}/events`);
  document.addEventListener("left", () => stream.close());
  return new Promise((heard) => {
    stream.addEventListener("end", ({ data }) => {
      stream.close();
      const { kind, error: refused, replies, session_id: session } = JSON.parse(data);
      const message = replies.map((each) => each.text).join("\n");
      if (kind !== "message" && (refused || !session)) say(...outcomeOf({ refused, message }));
      heard();
    });
  });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-act]");
  if (!button) return;
  if (isMeant(event, button)) act(button, JSON.parse(button.dataset.said || "{}"));
  else say("", words("too_soon"));
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-act]");
  if (!form) return;
  event.preventDefault();
  const filled = [...new FormData(form)].filter(([, value]) => value !== "");
  act(form, { ...JSON.parse(form.dataset.said || "{}"), ...Object.fromEntries(filled) });
});
