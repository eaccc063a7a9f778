// Exchanges the admin's token, typed or behind the # of the address that `surepick serve` prints, for a cookie.

import { find, onSubmit, request } from "./common.js";

async function login(token) {
  try {
    await request("POST", "/login", { body: { token } });
    location.replace(location.pathname + location.search);
  } catch (error) {
    find("error").textContent = error.message;
  }
}

onSubmit(find("login"), () => login(find("token").value.trim()));

if (location.hash.length > 1) {
  const token = location.hash.slice(1);
  history.replaceState(null, "", location.pathname + location.search); // it must not stay in the address
  login(decodeURIComponent(token));
}
