// Search as a reader of the site does, by its own worker (Material's): the documents that are indexed and the queries come
// as JSON on standard input, the pages that each query finds go to standard output, the best first.
import { readFileSync } from "node:fs";
import { createContext, runInContext } from "node:vm";

const config = { // as the site's search_index.json has it
  lang: ["en"],
  separator: "[\\s\\-]+",
  pipeline: ["stopWordFilter"],
  fields: { title: { boost: 1000 }, text: { boost: 1 } },
};
const { worker, docs, queries } = JSON.parse(readFileSync(0, "utf8"));
let listen, answer;
const page = createContext({ console, addEventListener: (_, f) => (listen = f), postMessage: (each) => (answer = each) });
page.self = page;
runInContext(readFileSync(worker, "utf8"), page);
await listen({ data: { type: 0, data: { config, docs, options: {} } } });
const found = {};
for (const query of queries) {
  await listen({ data: { type: 2, data: query } });
  found[query] = answer.data.items.map((sections) => sections[0].location.split("#")[0]);
}
console.log(JSON.stringify(found));
