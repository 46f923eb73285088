// The common parts of the scripts beside this file: one line for each check, and the end at the first that fails.
"use strict";

const { deepStrictEqual } = require("node:assert");

function check(what, seen, expected) {
  deepStrictEqual(seen, expected, what);
  console.log(`ok ${what}`);
}

async function refused(what, status, code, call) {
  const error = await call().then((answer) => ({ answer }), (error) => error);
  check(what, [error.statusCode, error.code ?? error.details?.errorCode], [status, code]);
}

module.exports = { check, refused };
