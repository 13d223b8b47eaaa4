// Sessions and transcripts: who reads stays where they are while the page changes, and what the agent writes is
// seen growing. The server makes what is shown; here it is put in its place.

import { keeping, refresh, renew } from "./live.js";
import "./site.js";
import "./write.js";

const RETRY_MILLISECONDS = 2000;

keeping((replace) => {
  unmoved(replace);
  follow();
});

// A browser scrolls by whole points of the screen: what is left over is made good with the next change.
let off = 0;

// At its newest line a transcript stays there; who reads what was said before is not moved, whatever comes below.
function unmoved(change) {
  const log = document.querySelector(".log");
  const from = log?.scrollTop;
  const read = from < 0 && inView(log);
  const at = read && topOf(read) - off;
  change();
  if (log) log.scrollTop = from;
  const now = read && document.getElementById(read.id);
  if (!now) return;
  log.scrollTop += topOf(now) - at;
  off = topOf(now) - at;
}

// The first message of which something is seen.
function inView(log) {
  const messages = [...log.querySelectorAll("#messages > [id]")];
  return messages.find((each) => each.getBoundingClientRect().bottom > topOf(log));
}

function topOf(element) {
  return element.getBoundingClientRect().top;
}

// What is written just now stands at the end, until the page has it from the transcript: then the part for it
// is gone, or says that it comes after more steps than are told of here.

let stream = null;
let grown = null;
let later = 0;
let isLeft = false;

function follow() {
  const part = document.getElementById("growing");
  if (!part || document.hidden || isLeft) return unfollow();
  show();
  if (stream || later) return;
  stream = new EventSource(part.dataset.stream);
  stream.addEventListener("grown", (event) => {
    grown = JSON.parse(event.data);
    show();
  });
  stream.addEventListener("over", () => again(refresh));
  stream.onerror = () => stream?.readyState === EventSource.CLOSED && again();
}

function show() {
  const part = document.getElementById("growing");
  if (!part || !grown || grown.step < Number(part.dataset.step)) return;
  const made = new DOMParser().parseFromString(grown.markup, "text/html");
  unmoved(() => renew(document.getElementById("grown"), made.body));
}

// The page may still show a turn that is over: it is looked at anew, and then perhaps another one is followed.
let over = 0;

function again(look) {
  unfollow();
  const soon = look && Date.now() - over > RETRY_MILLISECONDS;
  over = Date.now();
  later = setTimeout(async () => {
    await look?.();
    later = 0;
    follow();
  }, soon ? 0 : RETRY_MILLISECONDS);
}

function unfollow() {
  clearTimeout(later);
  stream?.close();
  stream = grown = null;
  later = 0;
}

document.addEventListener("visibilitychange", follow);
document.addEventListener("left", () => {
  isLeft = true;
  unfollow();
});
follow();
