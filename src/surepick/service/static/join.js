// The page of a shared link: a visitor becomes a judge, or goes on as the judge they are in this browser.

import { Refused, backoff, find, onSubmit, request, sleep } from "./common.js";

const form = find("join");
const path = `/join/${form.dataset.study}`;
const code = location.hash.slice(1);

start();

async function start() {
  if (!code) return end("This page needs a link", "Open the whole link that you were sent; it ends in a code after #.");
  find("wait").hidden = false;
  let about = null;
  for (let failures = 0; about === null; failures += 1) {
    try {
      about = await request("GET", `${path}/invitation`, { token: code });
    } catch (error) {
      if (error instanceof Refused) return end("This link does not work", error.message);
      find("wait").textContent = "The server cannot be reached; trying again …";
      await sleep(backoff(failures));
    }
  }
  if (about.judge_link) return location.replace(about.judge_link);
  if (about.state === "over") return end("This study is over", "There is nothing left to ask; thank you for coming.");
  find("wait").hidden = true;
  document.title = about.title;
  find("title").textContent = about.title;
  find("phrase-field").hidden = !about.phrase;
  find("phrase").required = about.phrase;
  form.hidden = false;
  find("name").focus();
}

onSubmit(form, async () => {
  find("error").textContent = "";
  const body = { name: find("name").value.trim(), phrase: find("phrase").value };
  try {
    const { judge_link } = await request("POST", path, { token: code, body });
    location.assign(judge_link);
  } catch (error) {
    find("error").textContent = error.message;
  }
});

function end(title, text) {
  find("wait").hidden = form.hidden = true;
  find("notice").hidden = false;
  find("notice-title").textContent = title;
  find("notice-text").textContent = text;
  find("notice-title").focus();
}
