// The judge's page. Questions are fetched in advance and answers sent in the background, so a judge need not wait for
// the network.

import { Outbox } from "./outbox.js";
import { Refused, backoff, element, find, request, sleep, swatch } from "./common.js";

const AHEAD = 2; // questions held: the one shown and the next
const HEARTBEAT = 20_000; // asking for the same questions again renews their leases, and tells whether the study goes on
const NOT_READY = 300; // before asking again for a question that was not ready
const EXHAUSTED = 10_000; // before asking again once all that helps has been answered
const DOUBLE_TAP = 120; // a second tap of a double tap must not answer the next question

// What chooses an item, by the kind of question and the item's place.
const CHOICES = {
  compare: (place) => [{ answer: "a", key: "←", shortcuts: "ArrowLeft a" }, { answer: "b", key: "→", shortcuts: "ArrowRight b" }][place],
  pick: (place) => ({ answer: `${place + 1}`, key: place + 1, shortcuts: `${place + 1}` }),
  rank: (place) => ({ place: place + 1, key: place + 1, shortcuts: `${place + 1}` }),
};
const GRADES = ["much better", "better", "tie", "worse", "much worse"];

const token = location.hash.slice(1);
const outbox = new Outbox(token, showSaved, onRefusal);
const held = [];
const known = new Set(); // ids of questions answered or held by this page
let invitation = null;
let mine = 0; // answers of this judge
let study = { answered: 0, remaining: null };
let shownAt = 0;
let last = null; // the question answered last, which can be undone
let ranked = []; // places tapped so far of a question that asks for an order, the best first
let filling = false;
let ended = false;
let paused = false;
let exhausted = false; // this judge has had every question that helps now

start();

async function start() {
  if (!token) return end("This page needs a link", "Open the link that you were sent; it ends in a long code.", false);
  find("wait").hidden = false;
  for (let failures = 0; invitation === null; failures += 1) {
    try {
      invitation = await request("GET", "/judge/invitation", { token });
    } catch (error) {
      if (error instanceof Refused) return endOfLink(error);
      find("wait").textContent = "The server cannot be reached; trying again …";
      await sleep(backoff(failures));
    }
  }
  find("wait").textContent = "One moment …";
  paused = invitation.state === "paused";
  mine = invitation.answers;
  document.title = invitation.title;
  find("title").textContent = invitation.title;
  find("instructions").hidden = !invitation.instructions;
  find("instructions").open = mine === 0;
  find("instructions-text").innerHTML = invitation.instructions; // safe: made by the server, which shows tags as text
  for (const entry of outbox.entries) known.add(entry.question);
  outbox.open(invitation.study);
  if (known.size) {
    // They may have been sent when the page was closed. Once all are acknowledged, the server's count includes them.
    await outbox.flush();
    mine = (await request("GET", "/judge/invitation", { token }).catch(() => invitation)).answers;
  }
  document.addEventListener("keydown", onKey);
  document.addEventListener("click", (event) => {
    const { answer: word, place } = event.target.closest?.("[data-answer], [data-place]")?.dataset ?? {};
    if (word) answer(word);
    else if (place) rank(Number(place));
  });
  find("undo").addEventListener("click", undo);
  find("comment").addEventListener("click", comment);
  find("comment-cancel").addEventListener("click", () => find("commenting").close());
  find("comment-form").addEventListener("submit", saveComment);
  document.addEventListener("visibilitychange", () => document.hidden || refill(true));
  setInterval(() => document.hidden || refill(true), HEARTBEAT);
  if (paused) show();
  refill();
}

/** Lease questions until enough are held; with `anyway` ask at least once. */
async function refill(anyway = false) {
  if (filling || ended) return;
  filling = true;
  for (let failures = 0; !ended && (anyway || paused || held.length < AHEAD); ) {
    anyway = false;
    const wanted = AHEAD + outbox.entries.length;
    let reply;
    try {
      reply = await request("POST", `/studies/${invitation.study}/questions?n=${Math.min(100, wanted)}`, { token });
      failures = 0;
    } catch (error) {
      if (error instanceof Refused) endOfLink(error);
      await sleep(backoff((failures += 1)));
      continue;
    }
    study = reply;
    exhausted = reply.exhausted;
    if (!reply.open) await endOfStudy();
    else if (exhausted) {
      show();
      await sleep(EXHAUSTED);
    } else if (reply.questions.length === 0) await checkPaused();
    else paused = false;
    const fresh = reply.questions.filter((question) => !known.has(question.id));
    for (const question of fresh) {
      known.add(question.id);
      held.push(question);
      for (const item of question.items) if (item.image) new Image().src = item.image;
    }
    show();
    // The next question is not ready, and the server waits for one only where the judge holds none.
    if (reply.questions.length && !fresh.length && held.length < AHEAD) await sleep(NOT_READY);
  }
  filling = false;
}

/** No questions came: are they not ready yet, or is the study paused? */
async function checkPaused() {
  try {
    paused = (await request("GET", "/judge/invitation", { token })).state === "paused";
  } catch (error) {
    if (error instanceof Refused) endOfLink(error);
  }
  await sleep(paused ? 2_000 : 100);
}

/** Show the first question held, unless it is shown already. */
function show() {
  showProgress();
  if (ended) return;
  find("cards").dataset.held = held.length;
  const question = paused ? null : held[0];
  const done = exhausted && !question && !paused;
  find("question").hidden = !question;
  find("wait").hidden = Boolean(question) || paused || done;
  find("notice").hidden = !paused && !done;
  if (done) return notice("Thank you", "You have answered everything that helps now. The result now depends on other people's answers; this page goes on by itself if they bring a new question.", true);
  if (paused) return notice("A short break", "The study is paused. This page will continue automatically.", false);
  const cards = find("cards");
  if (!question || cards.dataset.shown === `${question.id} ${question.turn}`) return;
  cards.dataset.shown = `${question.id} ${question.turn}`;
  const { items, kind, top } = question;
  cards.classList.toggle("pair", items.length === 2);
  cards.classList.toggle("many", items.length > 2);
  cards.classList.toggle("graded", kind === "grade");
  find("yesno").hidden = kind !== "yes/no";
  find("grades").hidden = kind !== "grade";
  find("tie").hidden = kind === "grade" || !question.answers.includes("tie");
  find("input").hidden = !question.input;
  find("input-text").innerHTML = question.input?.html ?? ""; // safe: made by the server, which shows tags as text
  find("task").hidden = kind !== "pick" && kind !== "rank";
  find("task").textContent = kind === "pick" ? "Tap the best one." : `Tap the best first, then the next best: ${top} taps.`;
  cards.replaceChildren(...items.map((item, place) => card(item, CHOICES[kind]?.(place), kind === "grade" ? "AB"[place] : "")));
  ranked = [];
  for (const text of cards.querySelectorAll(".text")) {
    // One that can be scrolled, or has links, is for reading; any other is part of what is tapped.
    const scrolls = text.scrollHeight > text.clientHeight + 1;
    text.classList.toggle("scrolls", scrolls);
    text.classList.toggle("reads", scrolls || text.querySelector("a, pre") !== null);
    if (scrolls) text.tabIndex = 0; // by keyboard too
  }
  cards.classList.remove("fresh");
  void cards.offsetWidth; // restarts the animation
  cards.classList.add("fresh");
  const names = items.map((item) => item.label);
  const asked = names.length === 1 ? names[0] : `${names.slice(0, -1).join(", ")}, or ${names.at(-1)}?`;
  find("live").textContent = `Question ${mine + 1}: ${asked}`;
  shownAt = performance.now();
}

/** What a judge sees of an item, with a button that chooses it if there is a choice. */
function card(item, choice, letter) {
  const label = letter && letter !== item.label ? `${letter}: ${item.label}` : item.label;
  const name = element("span", { class: "name" }, label);
  const { answer, place, key, shortcuts } = choice ?? {};
  const about = { class: "choose", "data-answer": answer, "data-place": place, "aria-keyshortcuts": shortcuts };
  const button = choice ? element("button", about, name, element("span", { class: "key", "aria-hidden": "true" }, `${key}`)) : name;
  const text = item.html ? element("div", { class: "text prose" }) : null;
  if (text) text.innerHTML = item.html; // safe: made by the server, which shows tags as text
  return element("article", { class: "card" }, item.image ? element("img", { src: item.image, alt: "" }) : null, swatch(item), text, button);
}

/** Put the item at this place next in the order; one that has its rank already is taken back, with those after it. */
function rank(place) {
  const question = held[0];
  if (!question || ended || paused || performance.now() - shownAt < DOUBLE_TAP) return;
  const known = ranked.indexOf(place);
  ranked = known < 0 ? [...ranked, place] : ranked.slice(0, known);
  drawRanks();
  if (ranked.length === question.top) answer(ranked.join(">"));
}

function drawRanks() {
  for (const button of find("cards").querySelectorAll("[data-place]")) {
    const at = ranked.indexOf(Number(button.dataset.place)) + 1;
    button.closest(".card").dataset.rank = at || "";
    button.setAttribute("aria-pressed", String(at > 0));
  }
  find("undo").disabled = !ranked.length && !last;
  find("live").textContent = ranked.length ? `${ranked.length} of ${held[0].top} places given` : "";
}

function answer(word) {
  const question = held[0];
  if (!question || ended || paused || !(question.answers.includes(word) || (question.top && /^[1-9]/.test(word)))) return;
  if (performance.now() - shownAt < DOUBLE_TAP) return;
  held.shift();
  last = { question, word };
  outbox.put(question, word);
  if (word !== "skip") mine += 1;
  find("undo").disabled = false;
  find("said").textContent = "";
  show();
  refill();
}

async function undo() {
  if (ranked.length && !ended) {
    ranked = ranked.slice(0, -1);
    return drawRanks();
  }
  if (!last || ended) return;
  const { question, word } = last;
  last = null;
  find("undo").disabled = true;
  if (!outbox.take(question.id)) {
    await outbox.flush();
    try {
      const reply = await request("POST", `/studies/${invitation.study}/undo`, { token, body: { question: question.id } });
      question.turn = reply.turn;
    } catch (error) {
      return say(error instanceof Refused ? error.message : "The server cannot be reached, so this was not undone.");
    }
  }
  if (word !== "skip") mine -= 1;
  held.unshift(question);
  show();
  showSaved();
  say("Undone: choose again.");
}

let commented = null; // the question that the dialog is about

function comment() {
  if (!held[0] || ended || paused) return;
  if (commented !== held[0]) find("comment-text").value = "";
  commented = held[0];
  find("comment-error").textContent = "";
  find("commenting").showModal();
}

async function saveComment(event) {
  event.preventDefault();
  const body = { question: commented.id, text: find("comment-text").value };
  try {
    await request("POST", `/studies/${invitation.study}/comments`, { token, body });
  } catch (error) {
    find("comment-error").textContent = error instanceof Refused ? error.message : "The server cannot be reached; try again.";
    return;
  }
  find("commenting").close();
  say(body.text.trim() ? "Your comment is saved." : "Your comment is deleted.");
}

function onKey(event) {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || find("commenting").open) return;
  const kind = held[0]?.kind;
  const digit = /^[1-9]$/.test(event.key) ? Number(event.key) : 0;
  if (digit && kind === "rank" && digit <= held[0].items.length) return rank(digit);
  if (digit && kind === "pick" && digit <= held[0].items.length) return answer(event.key);
  if (digit && kind === "grade" && digit <= GRADES.length) return answer(GRADES[digit - 1]);
  const words = {
    ArrowLeft: kind === "compare" ? "a" : "no",
    ArrowRight: kind === "compare" ? "b" : "yes",
    ArrowUp: "tie",
    ArrowDown: "skip",
    a: "a",
    b: "b",
    y: "yes",
    n: "no",
  };
  const word = words[event.key];
  if (word) answer(word);
  else if (event.key === "u") undo();
  else if (event.key === "c") comment();
  else return;
  event.preventDefault();
}

function showProgress() {
  const left = study.remaining;
  const more = !left || ended ? "" : ` · about ${left.toLocaleString("en")} more needed from everybody together`;
  const answers = mine === 1 ? "1 answer from you" : `${mine.toLocaleString("en")} answers from you`;
  find("progress").textContent = invitation ? `${mine ? answers : "No answer from you yet"}${more}` : "";
  const bar = find("bar");
  bar.hidden = study.remaining === null || (ended && study.remaining > 0);
  bar.value = study.remaining === null ? 0 : study.answered / Math.max(1, study.answered + study.remaining);
}

function showSaved() {
  const mark = find("unsaved");
  const count = outbox.entries.length;
  mark.hidden = !(outbox.stuck && count);
  mark.textContent = `${count === 1 ? "1 answer" : `${count} answers`} not saved yet`;
}

/** The server refused an answer. */
function onRefusal(error) {
  if (error.status === 401 || error.status === 403) endOfLink(error);
  else if (!ended) say(error.message);
}

let silence;
function say(sentence) {
  find("said").textContent = sentence;
  clearTimeout(silence);
  silence = setTimeout(() => (find("said").textContent = ""), 6_000);
}

async function endOfStudy() {
  held.length = 0;
  ended = true;
  await outbox.flush();
  const thanks = mine === 1 ? "Your answer counted." : `Your ${mine.toLocaleString("en")} answers counted.`;
  end("That is all, thank you!", `There is nothing left to ask. ${mine ? thanks : ""}`, true);
}

function endOfLink(error) {
  const revoked = error.status === 403;
  const sentence = revoked ? "It was revoked. If you did not expect this, contact the person who invited you." : error.message;
  end("This link no longer works", sentence, false);
}

function end(title, text, good) {
  ended = true;
  showProgress();
  find("wait").hidden = find("question").hidden = true;
  find("notice").hidden = false;
  find("said").textContent = "";
  notice(title, text, good);
  showSaved();
}

function notice(title, text, good) {
  document.querySelector(".tick").toggleAttribute("hidden", !good);
  if (find("notice-title").textContent === title) return;
  find("notice-title").textContent = title;
  find("notice-text").textContent = text;
  find("notice-title").focus();
}
