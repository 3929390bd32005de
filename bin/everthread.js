#!/usr/bin/env node
// The command line's door. Written for any Node that reads ES modules, so that an old one can be told what is missing.
const [major, minor] = process.versions.node.split(".").map(Number);

if (major < 22 || (major === 22 && minor < 13)) {
  process.stderr.write(`error: Everthread needs Node 22.13 or newer, and this is Node ${process.versions.node}.\n`);
  process.exitCode = 1;
} else {
  // Node 22 warns that its SQLite is experimental; that one line is no news to the user of a command.
  const emitWarning = process.emitWarning;
  process.emitWarning = (warning, ...rest) => {
    if (!/^SQLite is an experimental feature/.test(String(warning))) emitWarning.call(process, warning, ...rest);
  };
  import("../dist/cli/main.js").then(({ main }) => main(process.argv.slice(2)));
}
