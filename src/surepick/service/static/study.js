// The dashboard: redrawn with each server-sent event, which brings the whole state of the study.

import { intervals, lines } from "./charts.js";
import { element, find, request, swatch } from "./common.js";
import { inviting } from "./inviting.js";

const study = find("study").dataset.study;
const api = `/studies/${study}`;
const LINES = 8; // rivals whose evidence is drawn
const LISTED = 30; // items and comments listed
const MOST_SCORE = 10; // larger scores come from items that won or lost every time, and say no more

const ACTIONS = {
  running: [["paused", "Pause"], ["closed", "Close"]],
  paused: [["running", "Resume"], ["closed", "Close"]],
  closed: [["archived", "Archive"]],
  archived: [["closed", "Restore from archive"]],
};

let items = new Map();
let evaluations = []; // past and present evidence: [{answers, best, evidence}]
let judges = [];
let current = null;
const invitations = inviting(api, attempt, async () => {
  await readJudges();
  drawJudges();
});

start();

async function start() {
  const [whole, history] = await Promise.all([request("GET", api), request("GET", `${api}/history`)]);
  items = new Map(whole.items.map((item) => [item.name, item]));
  evaluations = history;
  await readJudges();
  draw(whole);
  const news = new EventSource(`${api}/events`);
  news.addEventListener("study", (event) => draw(JSON.parse(event.data)));
  news.addEventListener("open", () => (find("offline").hidden = true));
  news.addEventListener("error", () => (find("offline").hidden = false));
}

const decided = () => ["certain", "within epsilon"].includes(current.verdict?.status);
const over = () => current.verdict && current.verdict.status !== "open";
const asks = () => ["running", "paused"].includes(current.state) && !over(); // whether a judge could still be of use
const label = (name) => items.get(name)?.label ?? name;
const scored = (score) =>
  Math.abs(score) > MOST_SCORE ? `${score > 0 ? "over " : "under −"}${MOST_SCORE}` : score.toFixed(2).replace("-", "−");

/** An item's small picture and name. */
function face(name, ...classes) {
  const item = items.get(name) ?? { label: name };
  const picture = item.image ? element("img", { src: item.image, alt: "", class: "thumb" }) : swatch(item, "dot");
  return element("span", { class: ["item", ...classes].join(" ") }, picture, element("span", { class: "name" }, item.label));
}

function draw(seen) {
  if (current && seen.phase !== current.phase) return location.reload();
  const known = current;
  current = seen;
  find("state").textContent = seen.condition;
  find("state").classList.toggle("warn", seen.state === "paused");
  document.querySelector(".grid").classList.toggle("empty", !seen.answers); // nothing to see yet but whom to invite
  find("inviting").hidden = !asks();
  drawActions();
  drawVerdict();
  drawGuarantee();
  drawClaims();
  drawEvidence();
  drawFreshness();
  drawPrepared();
  drawBoard();
  drawScores();
  drawPairs();
  drawJudges();
  if (!known || seen.judges !== known.judges || seen.state !== known.state) invitations.refresh();
  if (!known || seen.comments !== known.comments) drawComments();
  if (known && (seen.judges !== known.judges || seen.exhausted !== known.exhausted)) readJudges().then(drawAgain);
}

function drawAgain() {
  drawVerdict();
  drawJudges();
}

function drawActions() {
  const possible = ACTIONS[current.state].filter(([state]) => state !== "paused" || !over()); // nobody is asked any more
  const buttons = possible.map(([state, word]) => {
    const button = element("button", { type: "button" }, word);
    button.addEventListener("click", () => change(state));
    return button;
  });
  const shown = possible.map(([state]) => state).join(" ");
  if (find("actions").dataset.shown === shown) return;
  find("actions").dataset.shown = shown;
  find("actions").replaceChildren(...buttons);
}

function change(state) {
  if (state === "closed" && current.state !== "archived" && !confirm("Close the study for good? No more answers are accepted after that.")) return;
  attempt(() => request("POST", `${api}/state`, { body: { state } }));
}

/** Run `action`, and show the server's sentence if it refuses. */
async function attempt(action) {
  find("error").textContent = "";
  try {
    return await action();
  } catch (error) {
    find("error").textContent = error.message;
    return null;
  }
}

function drawVerdict() {
  const { verdict, forecast } = current;
  const picture = verdict && current.answers ? [...face(verdict.best).children].slice(0, -1) : [];
  find("claim").replaceChildren(...picture, element("span", {}, current.headline));
  const held = `Waiting for ${current.waiting} question${current.waiting === 1 ? "" : "s"} that judges hold; one that stays unanswered for ${current.lease} seconds is skipped.`;
  const said = current.explained.length ? current.explained : current.answers && current.waiting ? [held] : [];
  find("reason").replaceChildren(...said.map((sentence) => element("p", {}, sentence)));
  drawNeeded();
  find("answers").textContent = current.answers.toLocaleString("en");
  find("judge-count").textContent = current.judges.toLocaleString("en");
  const alive = verdict ? verdict.surviving : [...items.keys()];
  find("possible").textContent = `${alive.length} of ${items.size}`;
  const number = (value, unknown) => value?.toLocaleString("en") ?? unknown;
  const further = forecast && `${number(forecast.further, "many")} (${number(forecast.low)}–${number(forecast.high, "?")})`;
  find("further").textContent = current.nothing_left ? "–" : further ?? (over() ? "0" : "–");
  const out = [...items.keys()].filter((name) => !alive.includes(name));
  find("surviving").replaceChildren(
    ...[...alive.map((name) => [name, ""]), ...out.map((name) => [name, "out"])]
      .slice(0, 60)
      .map(([name, excluded]) => element("li", { class: excluded }, ...face(name).children)),
  );
  find("certificate").hidden = !decided();
  drawQuarantine();
}

/** How many judges it takes, and with which limits a new study would take fewer. */
function drawNeeded() {
  const { judges_needed: needed, state } = current;
  const shown = needed && (state === "running" || state === "paused");
  find("needed").hidden = !shown;
  find("needed").textContent = shown ? `${needed.sentence} ${needed.more !== 0 ? needed.fewer : ""}` : "";
}

function drawQuarantine() {
  const { quarantined } = current;
  const some = quarantined.slice(0, 5).map(({ said, question, reason }) => `“${said}” to question ${question}: ${reason}`);
  const count = quarantined.length === 1 ? "1 message of a judge is" : `${quarantined.length} messages of judges are`;
  find("quarantined").hidden = !quarantined.length;
  find("quarantined").textContent = `${count} stored but not counted. ${some.join(" ")}`;
}

function drawGuarantee() {
  const { verdict, insight } = current;
  const parts = verdict ? [verdict.statement, ...verdict.assumptions] : ["Nothing is claimed before the first answers."];
  find("guarantee").textContent = parts.join(" ");
  const checks = (insight?.checks ?? []).map((check) => ({ ...check, sentence: named(check.sentence) }));
  const alarms = checks.filter((check) => check.alarm);
  find("alarms").replaceChildren(
    ...alarms.map((check) => element("li", {}, element("strong", {}, `In doubt: ${check.assumption}`), check.sentence)),
  );
  find("quiet").hidden = !checks.length || alarms.length > 0;
  find("quiet").textContent = `✓ No alarm in ${checks.length} checks of these assumptions.`;
  find("details").hidden = !checks.length;
  find("checks").replaceChildren(
    ...checks.map((check) => element("div", {}, element("dt", {}, check.name), element("dd", {}, check.sentence))),
  );
}

function drawClaims() {
  const { claims } = current;
  find("ladder").hidden = !claims.length;
  find("claims").replaceChildren(
    ...claims.map(({ assume, assumption, ends_search, reached, result }) =>
      element("tr", {},
        element("th", { scope: "row" }, ends_search ? `${assume} (ends the study)` : assume),
        element("td", {}, assumption),
        element("td", { class: reached ? "quiet" : "" }, result))),
  );
}

/** A sentence with judges by name instead of id, and items by label. */
function named(sentence) {
  return judges.reduce((text, judge) => text.replaceAll(judge.id, judge.name || "a judge without a name"), sentence);
}

function drawEvidence() {
  const { verdict } = current;
  if (!verdict) return;
  const evidence = Object.fromEntries(verdict.rivals.map((rival) => [rival.item, rival.evidence]));
  if (!evaluations.length || evaluations.at(-1).answers < current.answers || evaluations.at(-1).best !== verdict.best) {
    evaluations.push({ answers: current.answers, best: verdict.best, evidence });
  }
  const rivals = verdict.rivals.slice(0, LINES).map((rival) => rival.item);
  const series = rivals.map((name) => ({
    name: label(name),
    points: evaluations.map((one) => [one.answers, one.evidence[name] ?? 0]),
  }));
  find("evidence").replaceChildren(lines(series, Math.log(1 / verdict.delta)));
}

/** Charts and tables are computed beside the count of answers, and may be a moment behind it. */
function drawFreshness() {
  const { insight, answers, features, blind, inputs } = current;
  const ties = insight?.ties ?? 0;
  find("ties").textContent = ties ? `and ${ties === 1 ? "1 tie" : `${ties.toLocaleString("en")} ties`}` : "";
  const about = features
    ? `Each item has ${features === 1 ? "one feature" : `${features} features`}.`
    : "The items have no features: each stands for itself, and nothing is assumed about which are alike.";
  find("about-items").textContent = `${about}${blind ? " Judges do not see their names." : ""}${inputs ? ` Each question shows two outputs for one of ${inputs.toLocaleString("en")} inputs, drawn at random.` : ""}`;
  const behind = insight && insight.answers !== answers;
  const when = insight?.at ? ` (${new Date(1_000 * insight.at).toLocaleTimeString()})` : "";
  find("as-of").textContent = behind
    ? `Leaderboard, checks, claims and judges below are of ${insight.answers.toLocaleString("en")} answers${when}; they follow within seconds.`
    : "";
}

function drawPrepared() {
  const later = current.phase ? ["Items that were added later were taken as they are."] : [];
  find("preparation").hidden = !current.prepared.length;
  find("prepared").replaceChildren(...[...current.prepared, ...later].map((sentence) => element("li", {}, sentence)));
}

function drawBoard() {
  const { insight } = current;
  const rows = (insight?.scores ?? []).slice(0, LISTED).map(({ item, score, rank: [best, worst] }) => {
    const [chosen, asked] = insight.won?.[item] ?? [0, 0];
    const cells = [best === worst ? best : `${best}–${worst}`, asked ? `${chosen} of ${asked}` : "–", scored(score)];
    return element("tr", {}, element("th", { scope: "row" }, face(item)), ...cells.map((cell) => element("td", {}, String(cell))));
  });
  find("board").replaceChildren(...rows);
}

async function drawComments() {
  const comments = await request("GET", `${api}/comments`);
  find("commented").hidden = !comments.length;
  find("comments").replaceChildren(
    ...comments.slice(0, LISTED).map(({ items: shown, name, at, text }) =>
      element("li", {},
        element("p", {}, text),
        element("p", { class: "small soft" },
          `${name || "a judge without a name"} on ${shown.map(label).join(" or ")}, ${new Date(1_000 * at).toLocaleString()}`))),
  );
}

function drawScores() {
  const scores = current.insight?.scores ?? [];
  const rows = scores.slice(0, 15).map((one) => ({
    name: label(one.item),
    score: Math.max(-MOST_SCORE, Math.min(one.score, MOST_SCORE)),
    low: one.interval[0] < -MOST_SCORE ? null : one.interval[0],
    high: one.interval[1] > MOST_SCORE ? null : one.interval[1],
  }));
  find("scores").replaceChildren(...(rows.length ? [intervals(rows)] : []));
  const more = scores.length > rows.length ? ` The leading ${rows.length} are shown.` : "";
  const refuted = "The answers contradict every logistic model, so the intervals are not valid.";
  const sure = `${current.insight?.scores_note ?? ""} Intervals are wider than the verdict needs: it uses the evidence against one rival at a time.${more}`;
  find("scores-note").textContent = current.insight?.refuted ? refuted : rows.length ? sure : "Shown after the first answers.";
}

function drawPairs() {
  const pairs = current.insight?.pairs ?? [];
  const most = Math.max(1, ...pairs.map((pair) => pair.asked));
  const rows = pairs.flatMap((pair) => {
    const other = pair.asked - pair.a_wins;
    const bars = element("span", { class: "bars" });
    for (const count of [pair.a_wins, other]) {
      const bar = element("span", {}, count ? String(count) : "");
      bar.style.width = `${(100 * count) / most}%`;
      bars.append(bar);
    }
    const right = pair.b === null ? element("span", { class: "right soft" }, `yes ${pair.a_wins}, no ${other}`) : face(pair.b, "right");
    return [face(pair.a), bars, right];
  });
  find("pairs").replaceChildren(...rows);
}

async function readJudges() {
  judges = await request("GET", `${api}/judges`);
}

function drawJudges() {
  const seen = current?.insight?.judges ?? {};
  const share = (value) => (value === null || value === undefined ? "–" : `${Math.round(100 * value)}%`);
  const focused = document.activeElement?.dataset.judge; // a button that is replaced keeps the focus
  find("judges").replaceChildren(
    ...judges.map((judge) => {
      const said = seen[judge.id] ?? { answers: 0, ties: 0, skips: 0 };
      const pace = current?.insight?.pace?.[judge.id];
      const cells = [
        [said.answers],
        [said.ties, "roomy"],
        [said.skips, "roomy"],
        [pace === undefined ? "–" : `${pace < 10 ? pace : Math.round(pace)} s`],
        [share(said.agreement)],
        [share(said.expected), "roomy"],
      ];
      const last = judge.revoked
        ? [element("span", { class: "soft small" }, "revoked")]
        : [...(current && asks() ? [linkButton(judge), " "] : []), revokeButton(judge)];
      return element(
        "tr",
        {},
        element("th", { scope: "row" }, judge.name || "without a name"),
        ...cells.map(([cell, kind]) => element("td", { class: kind }, String(cell))),
        element("td", { class: "actions" }, ...last),
      );
    }),
  );
  find("nobody").hidden = judges.length > 0;
  find("judges").closest("table").hidden = !judges.length;
  if (focused) document.querySelector(`[data-judge="${CSS.escape(focused)}"]`)?.focus();
}

function linkButton(judge) {
  const about = `Show the link of ${judge.name || "this judge"}`;
  const button = element("button", { type: "button", "aria-label": about, "data-judge": `link ${judge.id}` }, "Link");
  button.addEventListener("click", () => invitations.showLink(judge));
  return button;
}

function revokeButton(judge) {
  const about = `Revoke the link of ${judge.name || "this judge"}`;
  const button = element("button", { type: "button", "aria-label": about, "data-judge": judge.id }, "Revoke");
  button.addEventListener("click", async () => {
    if (!confirm(`${about}? Answers given so far stay.`)) return;
    await attempt(() => request("POST", `${api}/judges/${judge.id}/revoke`));
    await readJudges();
    drawJudges();
  });
  return button;
}
