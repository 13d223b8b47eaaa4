// The box to write in. What is written stays there until the server has it: each message has a key of its own, so
// that it is taken once, however often it has to be sent.

import { hearOut, newKey } from "./acts.js";
import { Attachments } from "./attach.js";
import { goTo, hearing, refresh } from "./live.js";
import { DRAFTS, say, send, visitor, words } from "./page.js";
import "./site.js";

const RETRY_MILLISECONDS = 2000;
const TOLD_MILLISECONDS = 10_000;
const form = document.getElementById("write");
// A conversation goes on in other sessions, and what is written there goes with it.
const PLACE = `${DRAFTS}${visitor} ${form?.dataset.draft ?? location.pathname}`;

const box = document.getElementById("say");
const button = form?.querySelector("button.main");
const note = document.getElementById("written");

// What was written and is not sent yet, its files and the key that it will have, is kept while the page is reloaded.
const files = form && new Attachments(form, tell, () => isSending || keep(box.value));
let draft = read();
let isSending = false;
let later = 0;

// What is to become of a message while a turn runs is asked anew with each turn, and answered as before.
const asked = document.getElementById("busy-shown");
let chosen = null;

function read() {
  try {
    return JSON.parse(sessionStorage.getItem(PLACE)) ?? { text: "", files: [], key: newKey() };
  } catch {
    return { text: "", files: [], key: newKey() };
  }
}

function keep(text, key = newKey()) {
  draft = { text, files: files.kept, key };
  try {
    if (text || draft.files.length) sessionStorage.setItem(PLACE, JSON.stringify(draft));
    else sessionStorage.removeItem(PLACE);
  } catch {
    // where a browser keeps nothing, it is gone with the page
  }
}

function tell(text) {
  note.textContent = text;
}

async function hand() {
  clearTimeout(later);
  if (isSending || (!box.value.trim() && files.isEmpty)) return;
  isSending = button.disabled = true;
  if (!(await files.whole())) {
    isSending = button.disabled = false;
    return tell(words("not_all"));
  }
  if (isChanged()) keep(box.value);
  const brought = draft.files.map((each) => each.id);
  const option = form.busy?.selectedOptions[0];
  const busy = option && !("usual" in option.dataset) ? { busy: option.value } : {};
  tell(words("sending"));
  say("", ""); // what came of the last order
  try {
    const said = { text: draft.text, ...busy, ...(brought.length && { files: brought }) };
    const sent = send(form.dataset.to, said, undefined, draft.key);
    // What a command says stands in no transcript.
    const isOrder = said.text.trimStart().startsWith("/");
    const soon = isOrder && hearing(sent, (told) => hearOut(form.dataset.to, told.turn_id));
    const told = await sent;
    files.clear(brought);
    if (box.value === draft.text) box.value = "";
    keep(box.value);
    tell(told.waiting ? words("queued", { count: told.waiting }) : "");
    const shown = note.textContent; // which the transcript says, too, for as long as it is true
    setTimeout(() => note.textContent === shown && tell(""), TOLD_MILLISECONDS);
    if (form.dataset.opens) await soon;
    if (form.dataset.opens) return goTo(`${form.dataset.opens}${told.session_id}#say`);
    refresh();
  } catch (error) {
    const isLost = error.message === words("no_answer");
    tell(isLost ? words("not_sent") : error.message);
    if (isLost) later = setTimeout(again, RETRY_MILLISECONDS);
    else keep(draft.text);
  } finally {
    isSending = button.disabled = false;
    if (isChanged()) keep(box.value);
  }
}

function isChanged() {
  const ids = (list) => list.map((each) => each.id).join();
  return box.value !== draft.text || ids(files.kept) !== ids(draft.files);
}

// Whoever has changed the message meanwhile sends it themselves.
function again() {
  if (!isChanged()) hand();
}

if (form) {
  if (!box.value) box.value = draft.text;
  files.restore(draft.files ?? []);
  // Whoever was writing goes on writing, and presses no keys that do something.
  if (location.hash === "#say" || box.value) box.focus();
  if (location.hash === "#say") history.replaceState(null, "", location.pathname);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    hand();
  });
  box.addEventListener("input", () => {
    if (!isSending) keep(box.value);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    if (matchMedia("(pointer: coarse)").matches) return;
    event.preventDefault();
    if (!event.repeat) hand();
  });
  addEventListener("online", again);
}

if (asked) {
  asked.addEventListener("change", ({ target }) => (chosen = target.value));
  new MutationObserver(() => {
    if (form.busy && chosen) form.busy.value = chosen;
  }).observe(asked, { childList: true });
}

// What can be done to a session: afterwards another one may go on in its place.

const actions = document.getElementById("actions");
document.getElementById("open-actions")?.addEventListener("click", () => actions.showModal());

document.addEventListener("acted", (event) => {
  actions?.close();
  const here = location.pathname.split("/").pop();
  const { session_id: next } = event.detail;
  if (actions && next && next !== here) goTo(location.pathname.replace(/[^/]*$/, next));
});
