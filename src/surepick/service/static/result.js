// The result page.

import { find } from "./common.js";

find("print").addEventListener("click", () => print());
