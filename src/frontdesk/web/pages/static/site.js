// What every page of the site does.

import "./page.js";
import "./live.js";
import "./acts.js";
import "./keys.js";
