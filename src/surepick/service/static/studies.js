// The list of studies.

import { find, request } from "./common.js";

find("logout").addEventListener("click", async () => {
  await request("POST", "/logout");
  location.assign("/");
});

if (location.hash) history.replaceState(null, "", location.pathname + location.search); // a token, after a second visit
