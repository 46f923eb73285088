// A note that users edit in a form, in Express with method-override. Usage: node forms.cjs PACKAGES HOST PORT
const [packages, host, port] = process.argv.slice(2);
const express = require(packages + "/express");
const methodOverride = require(packages + "/method-override");

let note = { version: 7, text: "milk" };
const form = ({ version, text }) => `<form method="post" action="/notes/1?_method=put&version=${version}">
  <textarea name="text">${text}</textarea>
  <button>Save</button>
</form>
`;

const app = express();
app.use(express.urlencoded({ extended: false }));
app.use(methodOverride("_method"));
app.get("/notes/1", (request, response) => {
  response.set("X-Version", String(note.version)).type("html").send(form(note));
});
app.put("/notes/1", (request, response) => {
  note = { version: note.version + 1, text: request.body.text };
  response.redirect(303, "/notes/1");
});
app.listen(Number(port), host);
