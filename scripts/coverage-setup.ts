// Runs in each of vitest's workers before the tests: the processes that these start write down what they ran. Set when
// the worker starts, it would make the worker do so too, of code that is not as in the files.
process.env.NODE_V8_COVERAGE = process.env.RUNVAULT_COVERAGE_FOLDER;
// what V8 tells of functions out of a cache is not precise
process.env.NODE_DISABLE_COMPILE_CACHE = "1";
