#!/usr/bin/env node
import { refuseOldNode } from "./process/refuse-old-node.ts";

// all else is loaded behind it: an older Node would stumble over its syntax before it could say so
if (refuseOldNode()) process.exitCode = 2;
else void import("./entry/start.ts").then(({ start }) => start());
