#!/usr/bin/env node
import { refuseOldNode } from "./refuse-old-node.ts";

// all else is loaded behind it: an older Node would stumble over its syntax before it could say so
if (refuseOldNode()) process.exitCode = 2;
else void import("./start.ts").then(({ start }) => start());
