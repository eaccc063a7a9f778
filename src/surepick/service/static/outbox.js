// Answers on their way. Each is kept in the browser until the server has acknowledged it, so none is lost when the
// connection breaks or the page is closed; the question's id makes sending it twice harmless.
//
// The newest answer stays here for a moment, or until the next one is given. During that time undo always works, whereas
// the server cannot take an answer back once its stage has been evaluated.

import { Refused, backoff, request, sleep } from "./common.js";

const UNDO_MILLISECONDS = 3_000;

export class Outbox {
  #token;
  #prefix;
  #changed;
  #refused;
  #path = null;
  #sending = null;
  #failures = 0;
  #wake = () => {};

  /** `changed()` is called when something was sent or failed; `refused(error, entry)` when the server refused one. */
  constructor(token, changed, refused) {
    this.#token = token;
    this.#prefix = `surepick:${token.slice(-20)}:`;
    this.#changed = changed;
    this.#refused = refused;
    addEventListener("online", () => this.#wake());
    addEventListener("pagehide", () => this.#sendLast());
  }

  /** Whether the last attempt failed. */
  get stuck() {
    return this.#failures > 0;
  }

  /** All that is not acknowledged, oldest first. */
  get entries() {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(this.#prefix));
    return keys.map((key) => JSON.parse(localStorage.getItem(key))).sort((one, other) => one.at - other.at);
  }

  /** From now on send to this study. */
  open(study) {
    this.#path = `/studies/${study}/answers`;
    this.#send();
  }

  /** Keep an answer and send it soon; those before it are sent now. */
  put(question, answer) {
    const now = Date.now();
    for (const entry of this.entries) this.#keep({ ...entry, due: 0 });
    this.#keep({ question: question.id, turn: question.turn, answer, at: now, due: now + UNDO_MILLISECONDS });
    this.#wake();
    this.#send();
  }

  /** Take an answer back if it has not been sent; whether that worked. */
  take(question) {
    const key = this.#prefix + question;
    if (this.#sending === question || localStorage.getItem(key) === null) return false;
    localStorage.removeItem(key);
    return true;
  }

  /** Send everything without further delay; resolves when it is all acknowledged or refused. */
  async flush() {
    for (const entry of this.entries) this.#keep({ ...entry, due: 0 });
    this.#wake();
    while (this.entries.length) await sleep(50);
  }

  #keep(entry) {
    localStorage.setItem(this.#prefix + entry.question, JSON.stringify(entry));
  }

  #running = false;

  async #send() {
    if (this.#running || !this.#path) return;
    this.#running = true;
    for (let entry; (entry = this.entries[0]); ) {
      const early = this.#failures ? 0 : entry.due - Date.now();
      if (early > 0) {
        await this.#pause(early);
        continue;
      }
      this.#sending = entry.question;
      try {
        await request("POST", this.#path, { body: this.#body(entry), token: this.#token });
        this.#done(entry);
      } catch (error) {
        if (error instanceof Refused) {
          this.#done(entry);
          this.#refused(error, entry);
        } else {
          this.#sending = null;
          this.#failures += 1;
          this.#changed();
          await this.#pause(backoff(this.#failures - 1));
        }
      }
    }
    this.#running = false;
  }

  #done(entry) {
    localStorage.removeItem(this.#prefix + entry.question);
    this.#sending = null;
    this.#failures = 0;
    this.#changed();
  }

  /** Wait, or until `#wake` is called. */
  #pause(milliseconds) {
    return new Promise((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, milliseconds);
    });
  }

  #body({ question, turn, answer }) {
    return { question, turn, answer };
  }

  /** The page is being closed: send what is left without waiting. It stays in the browser and is sent again next time. */
  #sendLast() {
    if (!this.#path) return;
    for (const entry of this.entries) {
      request("POST", this.#path, { body: this.#body(entry), token: this.#token, keepalive: true }).catch(() => {});
    }
  }
}
