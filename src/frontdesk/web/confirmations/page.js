"use strict";

// The pages of approvers. What is to be sent, and where, stands in data attributes, put there by the server.

const RETRY_MILLISECONDS = 5000;
const NO_ANSWER = "No answer came. Look at the request again before you decide.";
const KEEPS_NOTHING = "This browser keeps nothing for the page, so that nobody can decide here. Allow it to.";
const PROOF = "frontdesk-proof";

document.documentElement.className = "scripted";

const main = document.querySelector("main");
const outcome = document.getElementById("outcome");
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
    throw new Error(KEEPS_NOTHING);
  }
}

function forget(given) {
  if (given && proof() === given) localStorage.removeItem(PROOF);
  prove();
}

// Whoever has the session without its proof sees the way to sign in instead of buttons.
function prove() {
  const unproven = Boolean(main.dataset.session) && !proof();
  const [again, form] = [document.getElementById("sign-in-again"), document.getElementById("unproven")];
  document.documentElement.classList.toggle("unproven", unproven);
  if (!unproven) form?.remove();
  else if (!form) again?.after(again.content.cloneNode(true));
}

addEventListener("storage", prove);
addEventListener("pageshow", prove);
prove();

async function send(path, said, shown = proof()) {
  let answer;
  try {
    answer = await fetch(path, {
      method: "POST",
      credentials: "same-origin",
      redirect: "error",
      headers: {
        "content-type": "application/json",
        "x-frontdesk-page": "1",
        ...(shown && { "x-frontdesk-proof": shown }),
      },
      body: JSON.stringify(said),
    });
  } catch {
    throw new Error(NO_ANSWER);
  }
  if (answer.status === 401) forget(shown);
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(told.detail || `The server answered ${answer.status}.`);
  return told;
}

function say(kind, text) {
  outcome.className = kind;
  outcome.textContent = text;
}

async function attempt(act) {
  const buttons = [...document.querySelectorAll("button")];
  buttons.forEach((button) => (button.disabled = true));
  say("", "One moment …");
  try {
    await act();
  } catch (error) {
    say("failed", error.message);
  }
  buttons.forEach((button) => (button.disabled = false));
  arm();
}

// Nobody approves what is hidden and was not looked at, or one of the ten without typing its target. The
// server checks both; this tells it beforehand.

let seen = null;

function arm() {
  const approve = document.querySelector('[data-approves="true"]');
  if (!approve) return;
  const target = document.getElementById("target");
  const look = document.getElementById("look");
  if (look && seen) look.remove();
  approve.disabled = Boolean((look && !seen) || (target && !target.value.trim()));
}

document.addEventListener("input", (event) => {
  if (event.target.id === "target") arm();
});

function decide(button) {
  const asked = button.closest("[data-decision]");
  const reason = document.getElementById("reason");
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
      say(told.status, told.message);
    } finally {
      await refresh();
    }
  });
}

function reveal(button) {
  attempt(async () => {
    const told = await send(button.dataset.reveal, { t: button.dataset.link || null });
    document.getElementById("action").replaceChildren(...told.lines.map(line));
    document.getElementById("closing").replaceChildren(...told.matters.flatMap(matter));
    document.getElementById("hidden").remove();
    seen = told.seen;
    say("", told.message);
  });
}

function element(name, text, className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function line(told) {
  return element("p", told.text, `d${told.depth}`);
}

function matter(told) {
  const shown = document.createElement("dd");
  shown.append(element("code", told.shown));
  return [element("dt", told.name), shown];
}

function signOut(button) {
  attempt(async () => {
    const shown = proof();
    await send(button.dataset.session, {});
    forget(shown);
    location.assign(location.pathname);
  });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.approves) decide(button);
  else if (button?.dataset.reveal) reveal(button);
  else if (button?.id === "sign-out") signOut(button);
});

document.addEventListener("submit", (event) => {
  if (event.target.id !== "sign-in") return;
  event.preventDefault();
  const token = document.getElementById("token");
  attempt(async () => {
    const told = await send(event.target.dataset.session, { token: token.value }, null);
    token.value = "";
    keep(told.proof);
    location.assign(location.pathname);
  });
});

// The page as it would be now. What has changed of it takes the place of what is shown.

let looking = null;
let again = false;

async function refresh() {
  again = true;
  looking ??= (async () => {
    while (again) {
      again = false;
      await look();
    }
  })().finally(() => (looking = null));
  await looking;
}

async function look() {
  let answer, text;
  try {
    answer = await fetch(location.href, { credentials: "same-origin", redirect: "error" });
    text = await answer.text();
  } catch {
    return;
  }
  if (answer.ok) show(new DOMParser().parseFromString(text, "text/html"));
  else if (answer.status < 500) location.reload();
}

function show(page) {
  const state = page.querySelector("main").dataset.state;
  document.title = page.title;
  if (main.dataset.state === state) return;
  main.dataset.state = state;
  const focused = document.activeElement;
  const typed = ["reason", "target"].map((id) => [id, document.getElementById(id)?.value]);
  document.querySelectorAll("[data-live]").forEach((part) => {
    part.replaceChildren(...page.getElementById(part.id).childNodes);
  });
  typed.forEach(([id, value]) => {
    const field = document.getElementById(id);
    if (field && value) field.value = value;
  });
  arm();
  if (!focused.isConnected) focusAgain(focused);
  tick();
  if (!page.querySelector("main").dataset.events) leave();
}

function focusAgain(gone) {
  const links = [...document.querySelectorAll("[data-live] a")];
  const same = links.find((link) => link.href === gone.href) || (gone.id && document.getElementById(gone.id));
  same?.focus();
}

// Told that something happened, the page looks. Only the list does so where nobody sees it: a browser opens
// few connections to one server.

const connection = document.getElementById("connection");
let stream = null;
let later = 0;

function follow() {
  if (stream || !main.dataset.events) return;
  stream = new EventSource(main.dataset.events);
  stream.onopen = () => {
    connected(true);
    refresh();
  };
  stream.onmessage = refresh;
  stream.onerror = lost;
}

async function lost() {
  connected(false);
  if (stream?.readyState !== EventSource.CLOSED) return;
  unfollow();
  await look();
  later = setTimeout(follow, RETRY_MILLISECONDS);
}

function unfollow() {
  clearTimeout(later);
  stream?.close();
  stream = null;
}

function leave() {
  delete main.dataset.events;
  unfollow();
}

function connected(yes) {
  if (!connection) return;
  connection.className = yes ? "on" : "off";
  connection.textContent = yes ? "up to date" : "not connected, trying again …";
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) follow();
  else if (!connection) unfollow();
});

// Times run.

function tick() {
  document.querySelectorAll("time").forEach((time) => {
    const seconds = Math.trunc((new Date(time.dateTime) - Date.now() - ahead) / 1000);
    const span = said(Math.abs(seconds));
    time.textContent = seconds > 0 ? `in ${span}` : seconds < 0 ? `${span} ago` : "now";
  });
}

function said(seconds) {
  const minutes = Math.floor(seconds / 60);
  return minutes ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

setInterval(tick, 1000);
follow();
