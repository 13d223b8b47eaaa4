// The page as it would be now. What has changed of it takes the place of what is shown.

import { disarm, paint, require } from "./arming.js";
import { ago, isSame, leaveNote, leaveOutcome, main, tick, words } from "./page.js";

const RETRY_MILLISECONDS = 5000;
// A look that failed is tried again, later each time.
const AGAIN_MILLISECONDS = 1000;
const MOST_AGAIN_MILLISECONDS = 30_000;
const LOOK_MILLISECONDS = 20_000;
// The server says every 25 seconds that it is there: who has not heard that twice hears nothing any more.
const SILENCE_MILLISECONDS = 62_500;
const PAUSE_MILLISECONDS = 300;
// How long the page waits for an order to be taken, and for what comes of it: longer before it is left, since nobody
// hears of it afterwards.
const SENT_MILLISECONDS = 5000;
const HEARD_MILLISECONDS = 1000;
const LEFT_MILLISECONDS = 5000;
const REST_FACTOR = 5;
const KINDS = ["turn", "transcript", "session", "delivery", "confirmation", "person", "checkpoint", "background", "node"];

let looking = null;
let again = false;
let isCurrent = true;
let around = (replace) => replace();

require(() => isCurrent);

// What is kept while parts of the page are replaced.
export function keeping(keep) {
  around = keep;
}

export async function refresh() {
  again = true;
  looking ??= (async () => {
    while (again) {
      again = false;
      const begun = performance.now();
      await look();
      // The first of many events is shown at once, the others together; the longer a page takes, the fewer.
      if (again) await pause(Math.max(PAUSE_MILLISECONDS, REST_FACTOR * (performance.now() - begun)));
    }
  })().finally(() => (looking = null));
  await looking;
}

// Who has given an order is told what came of it before the page changes, and goes where the conversation goes then.
let ordered = null;
let told = null;

export function hearing(sent, hear) {
  const heard = sent.then(hear);
  const within = (most) =>
    Promise.race([sent.then(() => Promise.race([heard, pause(most)])), pause(SENT_MILLISECONDS + most)]).catch(() => {});
  ordered = within(HEARD_MILLISECONDS);
  told = within(LEFT_MILLISECONDS);
  heard.then(refresh).catch(() => {}).finally(() => (ordered = null));
  return told;
}

function pause(milliseconds) {
  return new Promise((go) => setTimeout(go, milliseconds));
}

async function look() {
  let answer, text;
  await ordered;
  try {
    const signal = AbortSignal.timeout(LOOK_MILLISECONDS);
    answer = await fetch(location.href, { credentials: "same-origin", redirect: "manual", signal });
    text = await answer.text();
  } catch {
    return lookLater();
  }
  await ordered; // which may have been given meanwhile
  // What is shown goes on at another address by now.
  if (answer.type === "opaqueredirect") return location.reload();
  if (answer.ok) {
    clearTimeout(another);
    untilAnother = AGAIN_MILLISECONDS;
    sign(true);
    show(new DOMParser().parseFromString(text, "text/html"));
  } else if (answer.status < 500) {
    if (answer.status === 401) leaveNote(words("ended"));
    if (answer.status === 404) leaveNote(words("gone"));
    location.reload();
  } else lookLater();
}

let another = 0;
let untilAnother = AGAIN_MILLISECONDS;

function lookLater() {
  sign(false);
  clearTimeout(another);
  another = setTimeout(refresh, untilAnother);
  untilAnother = Math.min(2 * untilAnother, MOST_AGAIN_MILLISECONDS);
}

function show(page) {
  if (isLeaving) return;
  if (!isSame(page)) return;
  const { state, events, shape } = page.querySelector("main").dataset;
  document.title = page.title;
  // What can be done here is another thing now: the page is loaded anew, whole. Who can write here goes on in the
  // next session, where a limit has ended this one, or an order of theirs.
  if (main.dataset.shape !== shape) {
    const next = document.getElementById("write") && page.querySelector("[data-goes-on]");
    if (next && (ordered || next.dataset.goesOn)) return goOn(`${next.getAttribute("href")}#say`);
    leaveOutcome();
    return location.reload();
  }
  if (state !== undefined && main.dataset.state === state) return;
  if (state !== undefined) main.dataset.state = state;
  const parts = [...document.querySelectorAll("[data-live]")]
    .map((part) => [part, page.getElementById(part.id)])
    .filter(([part, now]) => now && (state !== undefined || !steady(part).isEqualNode(steady(now))));
  // Where something can be pressed, what stands there now is looked at before it can.
  const arms = parts.flat().some((each) => each.querySelector("[data-arms]"));
  if (state !== undefined || arms) disarm();
  if (parts.length) exchange(parts);
  if (!events) leave();
}

function exchange(parts) {
  const focused = document.activeElement;
  const spot = spotOf(focused);
  const form = focused.closest("form");
  const unfolded = [...document.querySelectorAll("[data-live] details[open][id]")].map((each) => each.id);
  around(() => parts.forEach(([part, now]) => renew(part, now)));
  unfolded.forEach(unfold);
  if (!focused.isConnected) focusAgain(focused, spot, form);
  tick();
  paint();
}

// What is as it was is left alone: what somebody marks there stays marked, and nobody is read it again.
export function renew(part, now) {
  const [old, fresh] = [[...part.childNodes], [...now.childNodes]];
  const most = Math.min(old.length, fresh.length);
  let [first, last] = [0, 0];
  while (first < most && isAlike(old[first], fresh[first])) first += 1;
  while (last < most - first && isAlike(old.at(-1 - last), fresh.at(-1 - last))) last += 1;
  const [gone, come] = [old.slice(first, old.length - last), fresh.slice(first, fresh.length - last)];
  if (gone.length === 1 && come.length === 1 && isAlike(gone[0].cloneNode(), come[0].cloneNode())) {
    if (gone[0].nodeType === Node.ELEMENT_NODE) return renew(gone[0], come[0]);
  }
  gone.forEach((each) => each.remove());
  come.forEach((each) => part.insertBefore(each, old[old.length - last] ?? null));
}

function isAlike(one, other) {
  return steady(one).isEqualNode(steady(other));
}

// What somebody has unfolded stays so; where it is inside of something by now, that is unfolded, too.
function unfold(id) {
  let each = document.getElementById(id);
  for (; each; each = each.parentElement.closest("details")) each.open = true;
}

// What a part says, without what changes by itself: running times, what is armed, what somebody has unfolded.
function steady(part) {
  const copy = document.createElement("div");
  copy.append(part.cloneNode(true));
  copy.querySelectorAll("time").forEach((time) => time.replaceWith(time.dateTime));
  copy.querySelectorAll("[data-arms]").forEach((each) => each.removeAttribute("aria-disabled"));
  copy.querySelectorAll("[data-filled]").forEach((each) => each.replaceChildren());
  copy.querySelectorAll("details").forEach((each) => each.removeAttribute("open"));
  copy.normalize();
  return copy;
}

// Where something stands: in which part with a name, and there as which of what can have the focus.
const REACHED = "a, button, summary, input, select, textarea";

function spotOf(element) {
  const around = element.closest("[data-live] [id]:not(a, button, input)");
  return around && [around.id, [...around.querySelectorAll(REACHED)].indexOf(element)];
}

function focusAgain(gone, spot, form) {
  const links = [...document.querySelectorAll("[data-live] a")];
  const there = spot && document.getElementById(spot[0])?.querySelectorAll(REACHED)[spot[1]];
  const same = links.find((link) => link.href === gone.href) ?? document.getElementById(gone.id) ?? there;
  // Who was about to write still is, and follows no link by the next key.
  const near = form?.isConnected ? form.querySelector("textarea") : null;
  (same ?? near ?? document.querySelector("main a"))?.focus({ preventScroll: true });
}

// Told that something happened, the page looks. Only a list does so where nobody sees it: a browser opens few
// connections to one server.

let stream = null;
let later = 0;

function follow() {
  if (stream || !main.dataset.events) return;
  stream = new EventSource(main.dataset.events);
  watch();
  stream.onopen = () => {
    watch();
    refresh();
  };
  stream.addEventListener("here", () => {
    watch();
    if (!isCurrent) refresh();
  });
  stream.onmessage = happened;
  KINDS.forEach((kind) => stream.addEventListener(kind, happened));
  // The server cannot tell what was missed: what is shown is looked at anew, whole.
  stream.addEventListener("reset", refresh);
  stream.onerror = lost;
}

let lastEvent = 0;

function happened() {
  lastEvent = Date.now();
  watch();
  refresh();
}

// A connection of which nobody hears that it is cut looks as one on which nothing happens.
let watchdog = 0;

function watch() {
  clearTimeout(watchdog);
  watchdog = setTimeout(restart, SILENCE_MILLISECONDS);
}

function restart() {
  if (!stream) return;
  sign(false);
  unfollow();
  follow();
}

addEventListener("offline", () => stream && sign(false));
addEventListener("online", restart);

async function lost() {
  sign(false);
  if (stream?.readyState !== EventSource.CLOSED) return;
  unfollow();
  await look();
  later = setTimeout(follow, RETRY_MILLISECONDS);
}

let isLeaving = false;

// Go where the conversation goes, once what brought it there is told.
async function goOn(path) {
  isLeaving = true;
  await told;
  goTo(path);
}

// Go to another page of ours: from now on nothing that happens brings this one back.
export function goTo(path) {
  isLeaving = true;
  leaveOutcome();
  unfollow();
  location.assign(path);
}

function unfollow() {
  clearTimeout(later);
  clearTimeout(watchdog);
  stream?.close();
  stream = null;
}

let isLeft = false;

function leave() {
  isLeft = true;
  delete main.dataset.events;
  unfollow();
  clearTimeout(another);
  document.getElementById("connection")?.replaceChildren();
  document.getElementById("last-event")?.replaceChildren();
}

document.addEventListener("left", leave);

// Whether what is shown is what there is. While it may not be, nothing can be pressed.
let isLive = null;

function sign(yes) {
  isCurrent = yes;
  paint();
  if (yes || isLive !== false) tellConnection(yes);
  isLive = yes;
}

function tellConnection(yes) {
  const shown = document.getElementById("connection");
  if (!shown || isLeft) return;
  shown.className = yes ? "ok" : "wait";
  const since = Math.trunc((lastEvent - Date.now()) / 1000) || -1;
  const told = lastEvent ? ` · ${words("last_event", { ago: ago(since) })}` : "";
  const clock = new Date().toLocaleTimeString();
  shown.textContent = yes ? words("live") : words("reconnecting", { clock });
  const detail = document.getElementById("last-event");
  if (detail) detail.textContent = yes ? told : "";
}

setInterval(() => {
  if (isLive && lastEvent) tellConnection(true);
}, 1000);

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) follow();
  else if (main.dataset.background === undefined) unfollow();
});
follow();
