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

function loginByAddress() {
  if (location.hash.length < 2) return;
  const token = location.hash.slice(1);
  history.replaceState(null, "", location.pathname + location.search); // it must not stay in the address
  login(decodeURIComponent(token));
}

loginByAddress();
addEventListener("hashchange", loginByAddress); // the address pasted into this very page, which loads nothing
