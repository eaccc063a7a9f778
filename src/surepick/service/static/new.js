// The form of a new study.

import { find, onSubmit, request } from "./common.js";

/** The settings for a kind of question: yes/no about items, or a form of answer to a comparison. */
function questions(kind) {
  if (kind === "items" || kind === "both") return { kind };
  return { answer: kind, ...(["pick", "rank"].includes(kind) ? { show: Number(find("show").value) } : {}) };
}

function settings() {
  const budget = find("budget").value;
  const ends = find("assume").value; // a claim, or "policy:" and a name
  const repeats = find("repeats").value;
  const population = [...find("population").selectedOptions].map((option) => option.value);
  return {
    title: find("title").value,
    ...questions(find("kind").value),
    ...(ends.startsWith("policy:") ? { policy: ends.slice(7) } : ends ? { assume: ends } : {}),
    ...(repeats ? { repeats } : {}),
    ...(population.length ? { population } : {}),
    delta: Number(find("delta").value),
    epsilon: Number(find("epsilon").value),
    lease: Number(find("lease").value),
    instructions: find("instructions").value,
    ...(find("blind").checked ? { blind: true } : {}),
    ...(budget ? { budget: Number(budget) } : {}),
  };
}

function upload(table) {
  const form = new FormData();
  form.append("items", table);
  form.append("settings", JSON.stringify(settings()));
  for (const image of find("images").files) form.append("images", image);
  return request("POST", "/studies/upload", { body: form });
}

function uploadSystems(outputs) {
  const form = new FormData();
  form.append("outputs", outputs);
  form.append("settings", JSON.stringify(settings()));
  for (const inputs of find("inputs").files) form.append("inputs", inputs);
  return request("POST", "/studies/systems", { body: form });
}

function create() {
  const names = find("names").value.split("\n").map((name) => name.trim()).filter(Boolean);
  return request("POST", "/studies", { body: { ...settings(), items: names.map((name) => ({ name })) } });
}

/** How many judges it takes at least to prove one winner, where each is asked a pair once; docs/assumptions.md. */
function sayTeam() {
  const delta = Number(find("delta").value);
  const pairs = ["choose", "grade"].includes(find("kind").value) && !find("repeats").value && !find("outputs").files.length;
  const proves = ["", "winner"].includes(find("assume").value) && Number(find("epsilon").value) === 0 && delta > 0 && delta < 1;
  const fewest = Math.max(1, Math.ceil(Math.log2(1 / delta) - 1e-9));
  find("team").textContent = pairs && proves
    ? `Each judge is asked a pair once. So with delta ${delta} it takes at least ${fewest} judges who agree to prove one winner, and about three more as a rule; a smaller team proves a short list.`
    : "";
}

find("new").addEventListener("input", sayTeam);
sayTeam();

onSubmit(find("new"), async (event) => {
  const button = event.submitter ?? find("new").querySelector("button");
  button.disabled = true;
  try {
    const [table] = find("table").files;
    const [outputs] = find("outputs").files;
    const made = await (outputs ? uploadSystems(outputs) : table ? upload(table) : create());
    location.assign(`/study/${made.id}`);
  } catch (error) {
    find("error").textContent = error.message;
    button.disabled = false;
  }
});
