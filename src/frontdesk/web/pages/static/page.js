// What every page does: it talks to the server, says how that went, and lets times run.

import { disarm, isMeant, paint, require, setBusy } from "./arming.js";

const PROOF = "frontdesk-proof";
const NOTE = "frontdesk-note";
// What somebody has written and not sent: theirs alone, and gone when they sign out.
export const DRAFTS = "frontdesk-draft ";
const LINK_SIGN = "fdl_";
const YEAR_DAYS = 365.25;
const AGAIN_MILLISECONDS = 2000;

document.documentElement.className = "scripted";

const told = JSON.parse(document.documentElement.dataset.words);

// What scripts say, by its key; what is in braces is put in.
export function words(key, values = {}) {
  return told[key].replace(/{(\w+)}/g, (_, name) => values[name]);
}

export const main = document.querySelector("main");
// The server's clock decides; this one may be wrong.
const ahead = new Date(main.dataset.now || Date.now()) - Date.now();

// The proof is given out when somebody signs in, and kept where this origin alone can read it: other ports of
// the host get the cookie, with which one only looks. A link is the proof of what it names.

function proof() {
  try {
    return localStorage.getItem(PROOF);
  } catch {
    return null; // where a browser keeps nothing, signing in says so
  }
}

function keep(given) {
  try {
    localStorage.setItem(PROOF, given);
  } catch {
    throw new Error(words("keeps_nothing"));
  }
}

function forget(given) {
  if (given && proof() === given) localStorage.removeItem(PROOF);
  prove();
  document.getElementById("unproven")?.scrollIntoView({ block: "nearest" });
}

// Whoever has the session without its proof sees the way to sign in instead of buttons: where the page would say
// what became of them, or at its beginning.
function prove() {
  const isIn = Boolean(main.dataset.session);
  const unproven = (isIn || document.querySelector("[data-in-already]")) && !proof();
  const form = document.getElementById("unproven");
  document.documentElement.classList.toggle("unproven", Boolean(unproven));
  if (!unproven) form?.remove();
  else if (isIn && !form) {
    const made = document.getElementById("sign-in-again").content.cloneNode(true);
    (document.getElementById("outcome") ?? main.querySelector("header").lastElementChild).after(made);
  }
}

// Whom the page was made for; nobody where a link alone shows it.
export const { visitor } = document.documentElement.dataset;
let isTheirs = true;

require(() => isTheirs);

// Whether another page of this address is made for the same person. Once it is not, this one does nothing any more.
export function isSame(page) {
  if (isTheirs && visitor && page?.documentElement.dataset.visitor !== visitor) {
    isTheirs = false;
    makeOutcome();
    say("bad", words("somebody_else"));
    document.querySelector(".who")?.replaceChildren(words("somebody_else"));
    document.querySelectorAll("button").forEach((each) => (each.disabled = true));
    paint();
    // What still comes is for whoever was in: nothing listens to it any more.
    document.dispatchEvent(new Event("left"));
  }
  return isTheirs;
}

// Somebody signed in, in another tab: perhaps somebody else. What did not come tells nothing of that.
async function lookWhoIsIn() {
  const answer = await fetch(location.href, { credentials: "same-origin", redirect: "manual" }).catch(() => null);
  const text = answer?.status < 500 ? await answer.text().catch(() => null) : null;
  if (text === null) setTimeout(lookWhoIsIn, AGAIN_MILLISECONDS);
  else isSame(new DOMParser().parseFromString(text, "text/html"));
}

addEventListener("storage", ({ key, newValue }) => {
  prove();
  if (key === PROOF && newValue && visitor) lookWhoIsIn();
});
addEventListener("pageshow", prove);
prove();

// The proof that was shown counts no more where the answer is 401, unless another one is `lost` then, or none.
export async function send(path, said, shown = proof(), key = null, lost = shown) {
  const answer = await post(path, said, shown, key, lost);
  return answer.json().catch(() => ({}));
}

// What comes line by line, each as soon as it is there.
export async function hear(path, said, heard) {
  const lines = (await post(path, said)).body.pipeThrough(new TextDecoderStream()).getReader();
  let unread = "";
  for (;;) {
    const { done, value } = await lines.read().catch(() => {
      throw new Error(words("no_answer"));
    });
    if (done) return;
    const pieces = (unread + value).split("\n");
    unread = pieces.pop();
    pieces.forEach((piece) => heard(JSON.parse(piece)));
  }
}

// What every request says that changes something: that it is ours, and whose.
export function credentials(shown = proof()) {
  if (!isTheirs) throw new Error(words("somebody_else"));
  return {
    "x-frontdesk-page": "1",
    ...(shown && { "x-frontdesk-proof": shown }),
    ...(visitor && { "x-frontdesk-visitor": encodeURIComponent(visitor) }),
  };
}

// Why the server did not do it.
export function refusal(status, told, shown = proof()) {
  if (status === 401) forget(shown);
  return new Error(told?.detail || words("server_said", { status }));
}

async function post(path, said, shown = proof(), key = null, lost = shown) {
  const known = credentials(shown);
  let answer;
  try {
    answer = await fetch(path, {
      method: "POST",
      credentials: "same-origin",
      redirect: "error",
      headers: {
        "content-type": "application/json",
        ...known,
        ...(key && { "idempotency-key": key }),
      },
      body: JSON.stringify(said),
    });
  } catch {
    throw new Error(words("no_answer"));
  }
  if (answer.ok) return answer;
  throw refusal(answer.status, await answer.json().catch(() => null), lost);
}

// While a dialog is open, nothing behind it is seen or read out: what is said stands in the dialog, too.
export function say(kind, text) {
  const outcomes = document.querySelectorAll("#outcome, dialog[open] [data-outcome]");
  outcomes.forEach((outcome) => {
    outcome.className = kind ? `note ${kind}` : "soft";
    outcome.textContent = text;
  });
}

// Once the dialog is closed, it is read out from behind it.
function closed({ target }) {
  target.querySelector("[data-outcome]")?.replaceChildren();
  const outcome = document.getElementById("outcome");
  const text = outcome?.textContent;
  if (!text) return;
  outcome.textContent = "";
  requestAnimationFrame(() => (outcome.textContent ||= text));
}

document.addEventListener("close", closed, true);

// What the page says that comes after this one.

export function leaveNote(text, kind = "bad") {
  try {
    sessionStorage.setItem(NOTE, JSON.stringify([kind, text]));
  } catch {
    // where a browser keeps nothing, nothing is said
  }
}

// What was said here is said there.
export function leaveOutcome() {
  const outcome = document.getElementById("outcome");
  const kind = ["ok", "wait", "bad"].find((each) => outcome?.classList.contains(each));
  if (kind) leaveNote(outcome.textContent, kind);
}

function readNote() {
  try {
    const left = sessionStorage.getItem(NOTE);
    sessionStorage.removeItem(NOTE);
    if (!left) return;
    makeOutcome();
    say(...JSON.parse(left));
  } catch {
    // as above
  }
}

readNote();

// Where nothing can be done that would have one, too.
function makeOutcome() {
  if (document.getElementById("outcome")) return;
  const made = element("p", "");
  made.id = "outcome";
  made.setAttribute("role", "status");
  main.querySelector("header")?.lastElementChild.after(made);
}

export async function attempt(act) {
  setBusy(true);
  say("", words("one_moment"));
  try {
    await act();
  } catch (error) {
    say("bad", error.message);
  }
  setBusy(false);
}

export function element(name, text, className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

let linked = "";

document.addEventListener("submit", (event) => {
  if (event.target.id !== "sign-in") return;
  event.preventDefault();
  const token = document.getElementById("token");
  const code = linked;
  if (code && !isMeant(event, event.target.querySelector("button"))) return say("", words("too_soon"));
  attempt(async () => {
    offer("");
    const shows = { token: code || token.value.split("#").pop() };
    // The proof of who is in ends their session; a wrong token takes nothing from them.
    const told = await send(event.target.dataset.session, shows, proof(), null, null);
    token.value = "";
    keep(told.proof);
    if (told.still_in.length) leaveNote(words("still_in", { who: told.still_in.join(", ") }), "wait");
    goOn(event.target.dataset.session);
  });
});

// Whoever came to sign in is led on; whoever wanted another page is shown that one.
function goOn(login) {
  const wanted = new URL(location.href);
  wanted.searchParams.delete("t");
  location.assign(location.pathname === login ? main.dataset.home : wanted.pathname + wanted.search);
}

// The code of a link is in the part of the address that browsers keep to themselves, and stays in no history. Any
// page can lead here with a code of its own, so that it is used only when somebody presses the button.
function takeLink() {
  const code = location.hash.slice(1);
  if (!document.getElementById("sign-in") || !code.startsWith(LINK_SIGN)) return;
  history.replaceState(null, "", location.pathname + location.search);
  offer(code);
}

// A link that is put into the address of the page that is open does not load it anew.
addEventListener("hashchange", takeLink);

function offer(code) {
  linked = code;
  document.getElementById("linked").hidden = !code;
  document.getElementById("typed").hidden = Boolean(code);
  document.getElementById("token").disabled = Boolean(code);
  document.querySelector("#sign-in button").toggleAttribute("data-arms", Boolean(code));
  document.querySelector("#sign-in button").removeAttribute("aria-disabled");
  paint();
}

takeLink();

document.getElementById("sign-out")?.addEventListener("click", (event) => {
  const { session } = event.currentTarget.dataset;
  attempt(async () => {
    const shown = proof();
    await send(session, {});
    forget(shown);
    forgetDrafts();
    location.assign(location.pathname);
  });
});

function forgetDrafts() {
  const kept = Object.keys(sessionStorage).filter((each) => each.startsWith(DRAFTS));
  kept.forEach((each) => sessionStorage.removeItem(each));
}

// Times run, in the time zone of whoever looks.

export function tick() {
  document.querySelectorAll("time").forEach((time) => {
    const moment = new Date(time.dateTime);
    const seconds = Math.trunc((moment - Date.now() - ahead) / 1000);
    const told = forms[time.dataset.form](seconds, moment);
    if (time.textContent !== told) time.textContent = told;
    time.title ||= moment.toLocaleString();
  });
}

const forms = {
  ago,
  left: (seconds) => (seconds > 0 ? span(seconds) : words("no_time")),
  within: (seconds) => (seconds > 0 ? words("within", { span: span(seconds) }) : words("right_away")),
  clock: (_, moment) => {
    const today = moment.toDateString() === new Date(Date.now() + ahead).toDateString();
    const clock = moment.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    return today ? clock : `${moment.toLocaleDateString()} ${clock}`;
  },
};

export function ago(seconds) {
  return seconds < 0 ? words("ago", { span: span(seconds) }) : words("now");
}

// As the server tells it, too.
export function span(seconds) {
  const all = Math.abs(seconds);
  const [hours, minutes] = [Math.floor(all / 3600), Math.floor((all % 3600) / 60)];
  const days = Math.floor(hours / 24);
  if (days >= 730) return words("years", { years: Math.round(days / YEAR_DAYS) });
  if (days >= 60) return words("months", { months: Math.round((days / YEAR_DAYS) * 12) });
  if (days >= 2) return words(days >= 7 ? "days" : "days_hours", { days, hours: hours % 24 });
  if (hours) return words("hours", { hours, minutes });
  return minutes ? words("minutes", { minutes, seconds: all % 60 }) : words("seconds", { seconds: all });
}

document.querySelectorAll("time").forEach((time) => time.removeAttribute("title"));
setInterval(tick, 1000);
tick();
paint();
