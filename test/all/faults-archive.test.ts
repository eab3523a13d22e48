import "../faults/faults-archive.test.ts";
