// Changes with consequences: items added or removed during a study, a judge's data deleted.

import { find, onSubmit, request } from "./common.js";

const api = `/studies/${find("study").dataset.study}`;

/** The item that a line describes: a name and, where items have them, features. */
function item(line) {
  const wanted = Number(find("items").dataset.features);
  if (!wanted) return { name: line };
  const cells = line.split(",").map((cell) => cell.trim());
  const features = cells.splice(-wanted).map(Number);
  if (!cells.length || features.some(Number.isNaN)) {
    throw new Error(`“${line}” must be a name and ${wanted} numbers, separated by commas.`);
  }
  return { name: cells.join(", "), features };
}

/** Run `action` when the form is sent, and show the server's sentence if it refuses. */
function carryOut(form, action) {
  onSubmit(form, async () => {
    const shown = form.querySelector(".error");
    shown.textContent = "";
    try {
      await action();
    } catch (error) {
      shown.textContent = error.message;
    }
  });
}

carryOut(find("items"), async () => {
  const add = find("add").value.split("\n").map((line) => line.trim()).filter(Boolean).map(item);
  const remove = [...find("items").querySelectorAll("[name=remove]:checked")].map((box) => box.value);
  await request("POST", `${api}/items`, { body: { add, remove } });
  location.assign(`/study/${find("study").dataset.study}`);
});

carryOut(find("judge"), async () => {
  const { consequence } = await request("DELETE", `${api}/judges/${find("who").value}`);
  find("who").selectedOptions[0].remove();
  find("judge").reset();
  find("deleted").textContent = `Done. ${consequence}`;
});
