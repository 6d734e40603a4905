"use strict";
// Returns a page that shows which program serves it.

const fs = require("fs");
const http = require("http");
const os = require("os");
const path = require("path");

const read = (name) => fs.readFileSync(path.join(__dirname, name), "utf8");
const template = read("page.html");
const version = read("VERSION").trim();

const escape = (text) => text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);

function page() {
  const facts = {
    Version: version,
    Host: os.hostname(),
    Build: process.env.OPENSHIFT_BUILD_NAME || "none",
    Commit: (process.env.OPENSHIFT_BUILD_COMMIT || "none").slice(0, 7),
  };
  const rows = Object.entries(facts).map(([name, value]) => `<dt>${name}<dd>${escape(value)}`).join("");
  // Use functions, because a dollar sign has a special meaning in a replacement string.
  return template
    .replaceAll("{{greeting}}", () => escape(process.env.GREETING || "Hello"))
    .replace("{{facts}}", () => rows);
}

const server = http.createServer((request, response) => {
  const answer = (status, type, text) => response.writeHead(status, { "Content-Type": type }).end(text);
  switch (request.url) {
    case "/":
      return answer(200, "text/html; charset=utf-8", page());
    case "/healthz":
      return answer(200, "text/plain", "ok\n");
    default:
      return answer(404, "text/plain", "not found\n");
  }
});

const port = process.env.PORT || 8080;
server.listen(port, () => console.log(`version ${version} listens at port ${port}`));

// Complete open requests before the program exits.
process.on("SIGTERM", () => {
  server.close(() => process.exit(0));
  server.closeIdleConnections();
});
