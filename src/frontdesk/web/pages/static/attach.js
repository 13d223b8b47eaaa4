// Files for a message: each is brought as soon as it is chosen, one after the other, and can be taken away until the
// message is sent. Chosen by the button, pasted, or dropped into the box.

import { credentials, element, refusal, send, words } from "./page.js";

const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte"];

export function sized(bytes) {
  const step = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), UNITS.length - 1);
  const form = { style: "unit", unit: UNITS[step], maximumFractionDigits: step > 1 ? 1 : 0 };
  return new Intl.NumberFormat([], form).format(bytes / 1000 ** step);
}

export class Attachments {
  #form;
  #list;
  #tell;
  #changed;
  #items = [];
  #bringing = Promise.resolve();

  constructor(form, tell, changed) {
    this.#form = form;
    this.#list = document.getElementById("attached");
    [this.#tell, this.#changed] = [tell, changed];
    const chooser = document.getElementById("files");
    if (!chooser) return;
    document.getElementById("attach").addEventListener("click", () => chooser.click());
    chooser.addEventListener("change", () => {
      this.add(chooser.files);
      chooser.value = "";
    });
    form.addEventListener("paste", (event) => {
      const { files } = event.clipboardData;
      // What is copied from a table comes as a picture, too: whoever pastes words means words.
      if (!files.length || event.clipboardData.getData("text/plain")) return;
      event.preventDefault();
      this.add(files);
    });
    form.addEventListener("dragover", (event) => {
      if (event.dataTransfer.types.includes("Files")) event.preventDefault();
    });
    form.addEventListener("drop", (event) => {
      if (!event.dataTransfer.files.length) return;
      event.preventDefault();
      this.add(event.dataTransfer.files);
    });
  }

  // What is here, as it is kept with a draft.
  get kept() {
    return this.#items.filter((each) => each.id).map(({ id, name, size }) => ({ id, name, size }));
  }

  get isEmpty() {
    return !this.#items.length;
  }

  // Whether everything that was chosen is here, once nothing is under way.
  async whole() {
    await this.#bringing;
    return this.#items.every((each) => each.id);
  }

  restore(kept) {
    if (!document.getElementById("files")) return;
    this.#items = kept.map((each) => ({ ...each }));
    this.#draw();
  }

  clear(ids) {
    this.#items = this.#items.filter((each) => !ids.includes(each.id));
    this.#draw();
  }

  add(files) {
    const { mostFiles, mostBytes } = this.#form.dataset;
    for (const file of files) {
      if (this.#items.length >= Number(mostFiles)) return this.#tell(words("too_many_files", { most: mostFiles }));
      const item = { name: file.name, size: file.size, file };
      this.#items.push(item);
      if (file.size > Number(mostBytes)) item.error = words("file_too_large", { most: sized(Number(mostBytes)) });
      else this.#queue(item);
    }
    this.#draw();
    this.#changed();
  }

  #queue(item) {
    item.error = "";
    this.#bringing = this.#bringing.then(() => this.#items.includes(item) && this.#bring(item));
  }

  async #bring(item) {
    this.#tell(words("bringing", { name: item.name }));
    try {
      Object.assign(item, await this.#sent(item));
      this.#tell(words("brought", { name: item.name }));
    } catch (error) {
      item.error = error.message;
      if (this.#items.includes(item)) this.#tell(words("not_brought", { name: item.name, why: error.message }));
    }
    item.request = null;
    this.#draw();
    this.#changed();
  }

  #sent(item) {
    return new Promise((resolve, reject) => {
      const request = (item.request = new XMLHttpRequest());
      request.open("POST", `${this.#form.dataset.bring}?name=${encodeURIComponent(item.file.name)}`);
      Object.entries(credentials()).forEach(([name, value]) => request.setRequestHeader(name, value));
      request.setRequestHeader("content-type", item.file.type || "application/octet-stream");
      request.responseType = "json";
      request.upload.addEventListener("progress", (event) => {
        if (item.bar && event.lengthComputable) item.bar.value = event.loaded / event.total;
      });
      request.addEventListener("load", () => {
        const { status, response } = request;
        if (status === 201) resolve({ id: response.id, name: response.name, size: response.size });
        else reject(refusal(status, response));
      });
      ["error", "abort", "timeout"].forEach((kind) =>
        request.addEventListener(kind, () => reject(new Error(words("file_lost")))),
      );
      request.send(item.file);
      this.#draw();
    });
  }

  #remove(item) {
    this.#items = this.#items.filter((each) => each !== item);
    item.request?.abort();
    // Nobody waits for that: what is not sent is forgotten after a day.
    if (item.id) send(`${this.#form.dataset.bring}/${item.id}/discard`, {}).catch(() => {});
    this.#tell(words("removed", { name: item.name }));
    this.#draw();
    this.#changed();
    (this.#list.querySelector("button") ?? document.getElementById("say")).focus();
  }

  #draw() {
    this.#list.replaceChildren(...this.#items.map((item) => this.#row(item)));
    this.#list.hidden = this.isEmpty;
  }

  #row(item) {
    const row = element("li", "", item.error ? "line bad" : "line");
    row.append(element("bdi", item.name, "cut"), element("span", sized(item.size), "num soft"));
    item.bar = null;
    if (item.error) row.append(element("span", `✕ ${item.error}`));
    else if (!item.id) row.append((item.bar = this.#bar(item)));
    if (item.error && item.file && item.file.size <= Number(this.#form.dataset.mostBytes)) {
      row.append(this.#button(words("try_again"), `${words("try_again")}: ${item.name}`, () => this.#again(item)));
    }
    row.append(this.#button("✕", words("remove", { name: item.name }), () => this.#remove(item)));
    return row;
  }

  #again(item) {
    this.#queue(item);
    this.#draw();
  }

  #bar(item) {
    const bar = document.createElement("progress");
    [bar.max, bar.value] = [1, 0];
    bar.setAttribute("aria-label", words("bringing", { name: item.name }));
    return bar;
  }

  #button(text, label, act) {
    const button = element("button", text, "quiet");
    button.type = "button";
    button.setAttribute("aria-label", label);
    button.addEventListener("click", act);
    return button;
  }
}
