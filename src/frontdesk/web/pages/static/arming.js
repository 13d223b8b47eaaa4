// A button that changes something can be pressed a second after the page was shown, focused or changed: a click
// that was meant for another window, or for what stood here before, changes nothing.

const WAIT_MILLISECONDS = 1000;

let armedAt = Infinity;
let timer = 0;
let busy = false;
let pressed;
const conditions = [];

export function isArmed() {
  return performance.now() >= armedAt && !document.hidden && document.hasFocus();
}

// Begin the second anew.
export function disarm() {
  armedAt = performance.now() + WAIT_MILLISECONDS;
  clearTimeout(timer);
  timer = setTimeout(paint, WAIT_MILLISECONDS + 1);
  paint();
}

export function setBusy(yes) {
  busy = yes;
  paint();
}

// What else has to hold before a button can be pressed.
export function require(condition) {
  conditions.push(condition);
}

function isReady(button) {
  return !busy && conditions.every((holds) => holds(button));
}

export function paint() {
  const armed = isArmed();
  document.querySelectorAll("[data-arms]").forEach((each) => {
    each.setAttribute("aria-disabled", String(!(armed && isReady(each))));
  });
}

// Whether this click was begun, and ends, on a button that could be pressed all the while.
export function isMeant(event, button) {
  const begun = pressed;
  pressed = undefined;
  const whole = begun === undefined ? !event.pointerType : begun === button;
  return whole && isArmed() && isReady(button);
}

function begin(event) {
  const on = event.target.closest?.("[data-arms]");
  pressed = on && isArmed() && isReady(on) ? on : null;
}

addEventListener("pointerdown", begin, true);
addEventListener(
  "keydown",
  (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    // A key that is held down presses once.
    if (event.repeat && event.target.closest?.("button")) event.preventDefault();
    else begin(event);
  },
  true,
);
addEventListener("pageshow", disarm);
addEventListener("focus", disarm);
addEventListener("blur", paint);
addEventListener("resize", disarm);
document.addEventListener("visibilitychange", disarm);
// A mouse comes from elsewhere: perhaps from a window that stood above this one. A finger comes from nowhere, with
// each tap anew.
document.documentElement.addEventListener("pointerenter", (event) => {
  if (event.pointerType === "mouse") disarm();
});
disarm();
