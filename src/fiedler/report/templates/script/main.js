// The report of a clustering, drawn from the data in the page.

import { startCards } from "./cards.js";
import { writeContested, writeProfiles, writeUses } from "./columns.js";
import { startControls } from "./controls.js";
import { startGestures } from "./gestures.js";
import { startLegend } from "./legend.js";
import { startMap } from "./map.js";
import { startThumbnails } from "./marks.js";
import { writeAgreement, writeEvidence, writeHeader, writeSettings } from "./sections.js";
import { startTooltip } from "./tooltip.js";

startThumbnails();
startControls();
writeHeader();
startLegend();
startCards();
writeProfiles();
writeUses();
writeContested();
writeEvidence();
writeAgreement();
writeSettings();
startTooltip();
startMap();
startGestures();
document.documentElement.dataset.ready = "yes";
