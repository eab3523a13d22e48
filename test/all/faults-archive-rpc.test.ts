import "../faults/faults-archive-rpc.test.ts";
