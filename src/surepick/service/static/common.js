// Shared by several pages: requests, elements, and how an item is shown.

export class Refused extends Error {
  /** The server understood the request and refused it; `message` is its sentence. */
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

/** Send a request; the answer's JSON. Throws Refused where the server refuses, another error where trying again may help. */
export async function request(method, path, { body, token, keepalive = false } = {}) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const form = body instanceof FormData;
  if (body !== undefined && !form) headers["Content-Type"] = "application/json";
  const sent = form || body === undefined ? body : JSON.stringify(body);
  const reply = await fetch(path, { method, headers, body: sent, keepalive });
  if (reply.ok) return reply.status === 204 ? null : reply.json();
  const sentence = (await reply.json().catch(() => ({}))).detail ?? `The server answered ${reply.status}.`;
  if (reply.status >= 500 || reply.status === 429) throw new Error(sentence);
  throw new Refused(reply.status, sentence);
}

export const find = (id) => document.getElementById(id);

/** Run `action` instead of sending the form. Until then it is inert: the browser would send it, and nothing would happen. */
export function onSubmit(form, action) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    action(event);
  });
  form.inert = false;
}

/** An element with attributes and children; text is never taken for HTML. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** The coloured patch of an item, or null. */
export function swatch(item, classes = "swatch") {
  if (!item.colour) return null;
  const made = element("span", { class: classes, "aria-hidden": "true" });
  made.style.backgroundColor = item.colour;
  return made;
}

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Seconds to wait before the next attempt: 0.5, 1, 2, … up to 15. */
export const backoff = (failures) => Math.min(15_000, 500 * 2 ** failures);
