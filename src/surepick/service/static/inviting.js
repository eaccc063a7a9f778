// The dashboard's panel for inviting: the shared link, personal links, and many of them from a file.

import { find, onSubmit, request } from "./common.js";

/** Set the panel up. `attempt` runs a request and shows why it was refused; `changed` is called when judges were added. */
export function inviting(api, attempt, changed) {
  let offered = null; // the shared link as the server has it

  function draw() {
    const { shared, visitors, most, phrase } = offered;
    find("share").hidden = Boolean(shared);
    find("shared").hidden = !shared;
    const came = `${visitors} of at most ${most} visitors ${visitors === 1 ? "has" : "have"} joined.`;
    find("shared-said").textContent = shared
      ? `Everybody with this link can join and is a judge of their own${phrase ? ", if they know the pass phrase" : ""}. ${came}`
      : "One link for everybody, as a QR code too. Each visitor is a judge of their own.";
    if (!shared) return;
    find("shared-link").value = shared.link;
    find("shared-qr").src = shared.qr;
  }

  async function refresh() {
    offered = await request("GET", `${api}/shared-link`);
    draw();
  }

  /** Show a personal link, of a new judge or once more. */
  async function showLink(judge) {
    const found = await attempt(() => request("GET", `${api}/judges/${judge.id}/link`));
    if (!found) return;
    find("invited-name").textContent = `For ${judge.name || "a judge without a name"} only:`;
    find("link").value = found.link;
    find("qr").src = found.qr;
    find("invited").hidden = false;
    find("link").select();
  }

  onSubmit(find("share"), async () => {
    const body = { most: Number(find("most").value), phrase: find("phrase").value };
    if (await attempt(() => request("PUT", `${api}/shared-link`, { body }))) await refresh();
  });

  find("close-shared").addEventListener("click", async () => {
    if (await attempt(() => request("DELETE", `${api}/shared-link`))) await refresh();
  });

  onSubmit(find("invite"), async () => {
    const made = await attempt(() => request("POST", `${api}/judges`, { body: { name: find("name").value.trim() } }));
    if (!made) return;
    find("name").value = "";
    await changed();
    await showLink(made);
  });

  find("people").addEventListener("change", async () => {
    const form = new FormData();
    form.append("judges", find("people").files[0]);
    const made = await attempt(() => request("POST", `${api}/judges/upload`, { body: form }));
    find("people").value = "";
    if (made) await changed();
  });

  for (const button of document.querySelectorAll("[data-copies]")) {
    const word = button.textContent;
    button.addEventListener("click", async () => {
      const field = find(button.dataset.copies);
      field.select();
      await navigator.clipboard?.writeText(field.value);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = word), 2_000);
    });
  }

  return { refresh, showLink };
}
