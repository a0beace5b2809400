// What the client does when something is wrong, with a `fetch` of the test's own.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import vm from "node:vm";

import * as cloudsched from "../dist/esm/index.js";

const { Client, firebaseToken, liveInbox, liveTask } = cloudsched;
const json = (content, status = 200, headers = {}) => new Response(JSON.stringify(content), { status, headers: { "Content-Type": "application/json", ...headers } });
const problem = (status, type, headers) => json({ type: `https://cloudsched.dev/problems/${type}`, title: type, status, detail: type }, status, { "Content-Type": "application/problem+json", ...headers });

/** Return a client whose answers are these, one after the other, and what it has sent. */
function answering(...answers) {
  const sent = [];
  const fetch = async (address, request) => {
    sent.push({ address, ...request });
    const answer = answers[Math.min(sent.length, answers.length) - 1];
    return typeof answer === "function" ? answer(request) : answer.clone();
  };
  return { sent, make: (options) => new Client("https://api.example/", { fetch, ...options }) };
}

test("a refused token is asked for again, once", async () => {
  const { sent, make } = answering(problem(401, "unauthenticated"), json({ id: "t" }));
  const asked = [];
  const auth = { currentUser: { getIdToken: async (refresh) => `token-${asked.push(refresh)}` } };
  assert.equal((await make({ token: firebaseToken(auth) }).get("t")).id, "t");
  assert.deepEqual(asked, [false, true]);
  assert.deepEqual(sent.map((each) => each.headers.Authorization), ["Bearer token-1", "Bearer token-2"]);
  const refused = answering(problem(401, "unauthenticated"));
  await assert.rejects(refused.make({ token: firebaseToken(auth) }).get("t"), cloudsched.Unauthenticated);
  assert.equal(refused.sent.length, 2);
  assert.equal(await firebaseToken({ currentUser: null })(false), undefined);
});

test("an id that would lead to another operation is refused before anything is sent", async () => {
  for (const id of ["", ".", ".."]) {
    const { sent, make } = answering(json({ id: "t" }));
    const client = make({ key: "cs_x" });
    const calls = [
      client.get(id),
      client.cancel(id),
      client.sendEvent("t", id),
      client.execution("t", id),
      client.executions(id).take(1),
      client.inbox(id).take(1),
      client.person(id),
      client.calendar(id),
    ];
    for (const each of calls) await assert.rejects(each, cloudsched.InvalidInput);
    assert.deepEqual(sent, []);
  }
});

test("credentials and the user to act for are sent", async () => {
  const { sent, make } = answering(json({ id: "t" }));
  await make({ key: "k", platformToken: "p" }).actingFor("ada lovelace").get("a/b");
  assert.equal(sent[0].address, "https://api.example/v1/tasks/a%2Fb");
  assert.equal(sent[0].headers["X-Api-Key"], "k");
  assert.equal(sent[0].headers["X-On-Behalf-Of"], "ada%20lovelace");
  assert.equal(sent[0].headers["X-Serverless-Authorization"], "Bearer p");
});

test("an overloaded service is asked again, with the same key; other refusals are not", async () => {
  const { sent, make } = answering(problem(503, "unavailable"), json({ id: "t" }));
  await make().create({ title: "T", handler: "h" });
  assert.equal(sent.length, 2);
  assert.ok(sent[0].headers["Idempotency-Key"]);
  assert.equal(sent[0].headers["Idempotency-Key"], sent[1].headers["Idempotency-Key"]);
  for (const [status, kind] of [[400, cloudsched.InvalidInput], [403, cloudsched.Forbidden], [409, cloudsched.VersionConflict], [500, cloudsched.Unavailable]]) {
    const other = answering(problem(status, "x"));
    await assert.rejects(other.make().get("t"), kind);
    assert.equal(other.sent.length, 1);
  }
  const quota = answering(problem(429, "quota-exceeded", { "Retry-After": "7" }));
  await assert.rejects(quota.make().get("t"), (error) => error instanceof cloudsched.QuotaExceeded && error.retryAfter === 7);
  const never = answering(problem(503, "unavailable"));
  await assert.rejects(never.make({ retries: 1 }).get("t"), cloudsched.Unavailable);
  assert.equal(never.sent.length, 2);
  const claims = answering(problem(503, "unavailable"));
  await assert.rejects(claims.make().claim("q"), cloudsched.Unavailable);
  assert.equal(claims.sent.length, 1);
});

test("a deletion that an earlier sending may have done is done", async () => {
  const { make } = answering(problem(503, "unavailable"), problem(404, "not-found"));
  await make().delete("t");
  await assert.rejects(answering(problem(404, "not-found")).make().delete("t"), cloudsched.NotFound);
});

test("the whole request has one deadline, and a signal ends it", async () => {
  const hang = (request) =>
    new Promise((_, reject) => {
      const stop = () => reject(request.signal.reason);
      if (request.signal.aborted) stop();
      request.signal.addEventListener("abort", stop);
    });
  await assert.rejects(answering(hang).make({ timeout: 20 }).get("t"), cloudsched.TimedOut);
  const end = new AbortController();
  const waiting = answering(hang).make().get("t", { signal: end.signal });
  end.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
  await assert.rejects(answering(json({})).make().get("t", { signal: AbortSignal.abort(new Error("before")) }), /before/);
});

test("a connection that fails is no timeout, however little time there is", async () => {
  const closed = createServer();
  const { port } = await new Promise((resolve) => closed.listen(0, "127.0.0.1", () => resolve(closed.address())));
  await new Promise((resolve) => closed.close(resolve));
  const reset = createServer((socket) => socket.once("data", () => socket.resetAndDestroy()));
  const plain = createServer((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
  for (const server of [reset, plain]) await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cases = [
    [`http://127.0.0.1:${port}`, "ECONNREFUSED", true],
    [`http://127.0.0.1:${reset.address().port}`, "ECONNRESET", true],
    [`https://127.0.0.1:${reset.address().port}`, "ECONNRESET", true],
    [`https://127.0.0.1:${plain.address().port}`, "ERR_SSL", false],
    ["http://nowhere.invalid", "ENOTFOUND|EAI_AGAIN", undefined],
  ];
  for (const [url, reason, isRetryable] of cases) {
    await assert.rejects(new Client(url, { timeout: 5000, retries: 1 }).create({ title: "T" }), (error) => {
      assert.ok(error instanceof cloudsched.Unavailable && !(error instanceof cloudsched.TimedOut), `${url}: ${error}`);
      assert.match(error.message, new RegExp(reason));
      if (isRetryable !== undefined) assert.equal(error.isRetryable, isRetryable);
      assert.ok(error.idempotencyKey);
      return true;
    });
  }
  await assert.rejects(new Client(cases[0][0], { timeout: 200, retries: 50 }).get("t"), (error) => !(error instanceof cloudsched.TimedOut));
  for (const server of [reset, plain]) server.close();
  const late = answering(problem(503, "unavailable", { "Retry-After": "9" })).make({ timeout: 20 }).get("t");
  await assert.rejects(late, (error) => error.status === 503 && error.retryAfter === 9 && !(error instanceof cloudsched.TimedOut));
});

test("a key may be any text, and what no header can have is the caller's mistake", async () => {
  for (const key of ["größe 50 %", "日本語", "🎉👨‍👩‍👧", "a%20b", "x:y/z", "é".repeat(255)]) {
    const { sent, make } = answering(json({ id: "t" }));
    await make().create({ title: "T" }, { idempotencyKey: key });
    assert.match(sent[0].headers["Idempotency-Key"], /^[\x21-\x7e]+$/);
    assert.equal(decodeURIComponent(sent[0].headers["Idempotency-Key"]), key);
  }
  const { sent, make } = answering(json({ id: "t" }));
  for (const key of ["a\nb", "\ud800"]) await assert.rejects(make().create({ title: "T" }, { idempotencyKey: key }), cloudsched.InvalidInput);
  await assert.rejects(async () => make().get("\ud800"), cloudsched.InvalidInput);
  await assert.rejects(make().update("t", { title: "T" }, { etag: "日" }), cloudsched.InvalidInput);
  await assert.rejects(make().actingFor("\ud800").get("t"), cloudsched.InvalidInput);
  for (const options of [{ key: "a\n" }, { token: "日" }]) await assert.rejects(make(options).get("t"), cloudsched.Misconfigured);
  assert.deepEqual(sent, []);
});

test("what lasts is not asked again", async () => {
  for (const [status, type] of [[503, "misconfigured"], [500, "internal-error"]]) {
    const { sent, make } = answering(problem(status, type));
    await assert.rejects(make().get("t"), (error) => error instanceof cloudsched.Unavailable && !error.isRetryable);
    assert.equal(sent.length, 1);
  }
});

test("what answers in the API's place is told from it", async () => {
  const page = () => new Response("<html>", { status: 200, headers: { "Content-Type": "text/html" } });
  await assert.rejects(answering(page).make().get("t"), cloudsched.Unavailable);
  await assert.rejects(answering(() => new Response("<html>", { status: 404 })).make().get("t"), cloudsched.Unavailable);
  assert.throws(() => new Client("api.example"), TypeError);
});

test("an inbox is shown as Firestore pushes it", () => {
  const calls = [];
  const module = {
    collection: (...path) => path.slice(1).join("/"),
    query: (...parts) => parts.join(" "),
    orderBy: (field, direction) => `${field} ${direction}`,
    limit: (count) => `${count}`,
    onSnapshot: (query, next) => {
      calls.push(query);
      const createdAt = { toDate: () => new Date("2027-01-04T08:00:00Z") };
      next({ docs: [{ id: "m1", data: () => ({ title: "Report", createdAt }) }] });
      return () => calls.push("stopped");
    },
  };
  const shown = [];
  const stop = liveInbox(module, {}, "ada", { next: (messages) => shown.push(...messages), limit: 5 });
  stop();
  assert.deepEqual(calls, ["inboxes/ada/messages createdAt desc 5", "stopped"]);
  liveInbox(module, {}, "ada", { next: () => undefined, prefix: "cs_" });
  assert.equal(calls.at(-1), "cs_inboxes/ada/cs_messages createdAt desc 50");
  assert.deepEqual(shown, [{ id: "m1", isRead: false, title: "Report", createdAt: "2027-01-04T08:00:00.000Z" }]);
});

test("a task is shown as Firestore pushes it, until it is gone", () => {
  let push;
  const module = {
    doc: (...path) => path.slice(1).join("/"),
    onSnapshot: (target, next) => {
      push = (data, fromCache = false) => next({ id: "t1", data: () => data, metadata: { fromCache } });
      return () => target;
    },
  };
  const at = { toDate: () => new Date("2027-01-04T08:00:00Z") };
  const row = { toUint8Array: () => new TextEncoder().encode("[1,[]]") };
  const shown = [];
  const stop = liveTask(module, {}, "t1", { next: (task) => shown.push(task) });
  assert.equal(stop(), "tasks/t1");
  push(undefined, true); // no word from Firestore yet
  push({ title: "Ship", schedule: { at }, payload: { rows: [row], none: null }, private: { wakes: [at] } });
  push({ handler: "delivery", unlisted: { status: "ACTIVE", createdAt: at } });
  push({ title: "Ship", deletedAt: at });
  push(undefined);
  const iso = "2027-01-04T08:00:00.000Z";
  const task = { id: "t1", title: "Ship", schedule: { at: iso }, payload: { rows: [[1, []]], none: null } };
  assert.deepEqual(shown, [task, { id: "t1", handler: "delivery", status: "ACTIVE", createdAt: iso }, null, null]);
  assert.equal(liveTask(module, {}, "t1", { next: () => undefined, prefix: "cs_" })(), "cs_tasks/t1");
});

test("it is loaded by require, and needs nothing that a browser or a Worker lacks", async () => {
  const require = createRequire(import.meta.url);
  assert.deepEqual(Object.keys(require("../dist/cjs/index.js")).sort(), Object.keys(cloudsched).sort());
  const names = ["AbortController", "URLSearchParams", "Response", "crypto", "setTimeout", "clearTimeout"];
  const global = vm.createContext({ ...Object.fromEntries(names.map((name) => [name, globalThis[name]])), fetch: async () => json({ id: "t" }) });
  const loaded = new Map();
  const load = (name) => {
    if (!loaded.has(name)) {
      const module = { exports: {} };
      loaded.set(name, module.exports);
      const source = readFileSync(join(import.meta.dirname, "../dist/cjs", name), "utf-8");
      vm.runInContext(`(function (exports, require, module) {${source}\n})`, global)(module.exports, (other) => load(other.slice(2)), module);
    }
    return loaded.get(name);
  };
  assert.equal((await new (load("index.js").Client)("https://api.example").create({ title: "T" })).id, "t");
});
