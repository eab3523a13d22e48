#!/usr/bin/env node
import { refuseOldNode } from "./process/refuse-old-node.ts";

// everything else is loaded later: an older Node would fail on its syntax before it could say why
if (refuseOldNode()) process.exitCode = 2;
else void import("./entry/start.ts").then(({ start }) => start());
