// Before every file of tests the page's state is as at first. Files share what was loaded once, which takes them a third of the
// time, so none may see what another left behind.

import { vi } from "vitest";
import * as store from "../store";
import { adopt } from "../url";

vi.restoreAllMocks();
vi.unstubAllGlobals();
adopt("");
[store.lit.value, store.playing.value, store.filming.value, store.help.value, store.dialog.value] = [null, false, false, false, null];
if (typeof document !== "undefined") document.body.replaceChildren();
