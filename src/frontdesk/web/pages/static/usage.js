// The page of usage: what every page does, and plots.

import "./site.js";
import "./plots.js";
