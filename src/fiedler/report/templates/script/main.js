// The report of a clustering, drawn from the data beside it.

import { startCards } from "./cards.js";
import { startControls } from "./controls.js";
import { startGestures } from "./gestures.js";
import { startLegend } from "./legend.js";
import { startMap } from "./map.js";
import { startMarks } from "./marks.js";
import { writeAgreement, writeEvidence, writeHead, writeSettings } from "./sections.js";
import { startTooltip } from "./tooltip.js";

startMarks();
startControls();
writeHead();
startLegend();
startCards();
writeEvidence();
writeAgreement();
writeSettings();
startTooltip();
startMap();
startGestures();
document.documentElement.dataset.ready = "yes";
