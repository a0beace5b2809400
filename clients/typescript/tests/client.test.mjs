// Against a local stack: cloudsched dev --handlers ../../tests/clients/typescript_app.py -- npm test
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import * as cloudsched from "../dist/esm/index.js";

const { Client } = cloudsched;
const url = process.env.CLOUDSCHED_URL;
const client = new Client(url);
const greeting = { owner: "ada", title: "Greet", handler: "greet", payload: { name: "Ada" } };
const daily = { ...greeting, schedule: { rrule: "FREQ=DAILY;BYHOUR=9", timezone: "Europe/Paris" } };

/** Return the error that something throws, of a class. */
async function refused(kind, action) {
  let caught;
  await assert.rejects(action, (error) => Boolean((caught = error)));
  assert.ok(caught instanceof kind, `${caught}`);
  assert.ok(caught instanceof cloudsched.CloudschedError && caught instanceof Error);
  return caught;
}

test("a task is created, read, changed and deleted", async () => {
  const task = await client.create(daily);
  assert.equal(task.status, "ACTIVE");
  assert.equal((await client.get(task.id)).title, "Greet");
  assert.equal((await client.update(task.id, { title: "Later", labels: ["a=b"] })).title, "Later");
  assert.equal((await client.pause(task.id)).status, "PAUSED");
  assert.equal((await client.resume(task.id)).status, "ACTIVE");
  assert.equal((await client.upcoming(task.id, { count: 3 })).length, 3);
  assert.ok((await client.explain(task.id)).summary);
  assert.ok((await client.history(task.id)).entries.length >= 3);
  assert.equal((await client.tree(task.id)).task.id, task.id);
  assert.equal((await client.cancel(task.id)).status, "CANCELLED");
  await client.delete(task.id);
  const error = await refused(cloudsched.NotFound, client.get(task.id));
  assert.equal(error.status, 404);
  assert.equal(error.name, "NotFound");
});

test("a change of another state than the one that was seen is refused", async () => {
  const task = await client.create(daily);
  await refused(cloudsched.PreconditionFailed, client.update(task.id, { title: "No" }, { etag: '"1-other"' }));
  assert.equal((await client.get(task.id)).title, "Greet");
});

test("a creation whose answer is lost is repeated, and makes one task", async () => {
  const owner = randomUUID();
  let sent = 0;
  const lossy = new Client(url, {
    fetch: async (...request) => {
      const response = await fetch(...request);
      if (sent++ === 0) throw new TypeError("the connection was reset");
      return response;
    },
  });
  const task = await lossy.create({ ...daily, owner });
  assert.equal(sent, 2);
  assert.deepEqual((await client.tasks({ owner }).take(9)).map((each) => each.id), [task.id]);
});

test("errors are classes, with what the API says", async () => {
  const schedule = await refused(cloudsched.InvalidSchedule, client.create({ ...greeting, schedule: { rrule: "FREQ=NEVER" } }));
  assert.match(schedule.field, /^schedule/);
  assert.ok(schedule.hint);
  const words = await refused(cloudsched.AmbiguousSchedule, client.create({ ...greeting, schedule: "on 3/4 at 9" }));
  assert.ok(words.readings.length > 1);
  assert.ok(words.readings[0].label);
  await refused(cloudsched.UnknownHandler, client.create({ ...greeting, handler: "nobody" }));
  await refused(cloudsched.InvalidPayload, client.create({ ...greeting, payload: {} }));
  const key = randomUUID();
  await client.create(greeting, { idempotencyKey: key });
  await refused(cloudsched.KeyReused, client.create({ ...greeting, title: "Other" }, { idempotencyKey: key }));
});

test("a run is waited for, and has its result, its record and its logs", async () => {
  const task = await client.runNow("greet", { name: "Grace", times: 2 }, { owner: "ada" });
  const execution = await client.wait(task.id, { interval: 50 });
  assert.equal(execution.content, "hello Grace Grace");
  assert.equal((await client.execution(task.id, execution.id)).status, "SUCCEEDED");
  assert.match((await client.logs(task.id, execution.id)).lines[0].text, /greeting Grace/);
  assert.deepEqual(await client.deliveries(task.id, execution.id), []);
  const again = await client.trigger((await client.create(daily)).id, { name: "Once" });
  assert.equal(again.triggered.payload.name, "Once");
  await refused(cloudsched.TimedOut, client.wait(again.id, { timeout: 100, interval: 20 }));
});

test("lists are read page by page, as far as they are wanted", async () => {
  const owner = randomUUID();
  const created = await client.createMany([1, 2, 3].map((each) => ({ ...daily, owner, title: `T${each}` })));
  assert.ok(created.every((each) => each.task));
  const titles = [];
  for await (const task of client.tasks({ owner, pageSize: 2 })) titles.push(task.title);
  assert.deepEqual(titles.sort(), ["T1", "T2", "T3"]);
  const pages = [];
  for await (const page of client.tasks({ owner, pageSize: 2 }).pages()) pages.push(page.length);
  assert.deepEqual(pages, [2, 1]);
  assert.equal((await client.tasks({ owner, pageSize: 1 }).take(2)).length, 2);
  const [made, wrong] = await client.createMany([{ ...daily, owner }, { ...daily, owner, handler: "nobody" }]);
  assert.ok(made.task && wrong.error instanceof cloudsched.UnknownHandler);
  const change = await client.batchChange("pause", { owner });
  assert.equal((await client.wait(change.id, { interval: 50 })).status, "SUCCEEDED");
  assert.ok((await client.occurrences(new Date(Date.now() + 3 * 86_400_000)).take(1)).length);
});

test("a list is watched, and shown again once a task has changed", async () => {
  const owner = randomUUID();
  const end = new AbortController();
  const seen = [];
  await assert.rejects(async () => {
    for await (const tasks of client.watch({ owner }, { interval: 20, signal: end.signal })) {
      seen.push(tasks.map((each) => each.title));
      if (seen.length === 1) await client.create({ ...daily, owner, title: "New" });
      if (seen.length === 2) await client.update((await client.tasks({ owner }).take(1))[0].id, { title: "Newer" });
      if (seen.length === 3) end.abort(new Error("enough"));
    }
  }, /enough/);
  assert.deepEqual(seen, [[], ["New"], ["Newer"]]);
});

test("events reach a durable handler", async () => {
  const task = await client.create({ owner: "ada", title: "Ask", handler: "ask" });
  await client.sendEvent(task.id, "approved", { by: "grace" }, { early: true });
  assert.deepEqual((await client.wait(task.id, { interval: 50 })).content, { by: "grace" });
});

test("a worker claims, reports and gives back", async () => {
  const queue = `q${randomUUID()}`;
  await client.create({ owner: "ada", title: "Render", handler: "render", payload: { frames: 2 }, pull: queue });
  let [claim] = [];
  while (!claim) [claim] = await client.claim(queue, { worker: "box" });
  assert.deepEqual(claim.task.payload, { frames: 2 });
  assert.equal((await client.heartbeat(claim, { progress: [{ text: "half" }] })).isCancelled, false);
  await client.release(claim, { reason: "later" });
  [claim] = await client.claim(queue);
  assert.equal((await client.complete(claim, { content: { ok: true } })).status, "COMPLETED");
  await refused(cloudsched.LeaseLost, client.fail({ ...claim, leaseToken: "another" }, { error: { type: "E", message: "m" } }));
});

test("schedules are previewed, drafts confirmed, handlers listed", async () => {
  assert.match((await client.describeSchedule("every weekday at 9", "Europe/Paris")).description, /weekday/i);
  assert.equal((await client.preview({ schedule: daily.schedule, count: 2 })).occurrences.length, 2);
  assert.equal((await client.validateTask(daily)).upcoming.length, 10);
  const task = await client.create(daily);
  assert.equal((await client.validateTask({ title: "Would be" }, { taskId: task.id })).title, "Would be");
  assert.equal((await client.get(task.id)).title, "Greet");
  const handlers = await client.handlers();
  assert.deepEqual(handlers.map((each) => each.name), ["ask", "echo", "greet"]);
  await assert.rejects(client.confirm({ decision: "refusal" }), TypeError);
});

test("people, calendars, feeds, scripts and lists for operators", async () => {
  const owner = randomUUID();
  const saved = await client.putPerson(owner, { timezone: "Europe/Berlin", email: { address: "a@example.com" } });
  assert.equal(saved.timezone, "Europe/Berlin");
  const moved = await client.updatePerson(owner, { timezone: "America/New_York", locale: null });
  assert.deepEqual([moved.timezone, moved.email.address], ["America/New_York", "a@example.com"]);
  await assert.rejects(client.putPerson(owner, { timezone: "UTC" }), /would be removed/);
  await assert.rejects(client.updatePerson(owner, { timezone: "UTC" }, { etag: '"other"' }), { status: 412 });
  assert.equal((await client.person(owner)).email.address, "a@example.com");
  assert.equal((await client.putPerson(owner, { timezone: "UTC" }, { replace: true })).email, undefined);
  assert.equal((await client.unread(owner)).value, 0);
  assert.deepEqual(await client.inbox(owner).take(1), []);
  await client.deletePerson(owner);
  await client.putCalendar("closed", { owner, days: [{ date: "2027-08-02" }] });
  assert.ok((await client.calendars({ owner })).length);
  await client.deleteCalendar("closed", { owner });
  const feed = await client.createFeed({ owner });
  assert.deepEqual((await client.feeds({ owner })).map((each) => each.id), [feed.id]);
  await client.deleteFeed(feed.id);
  assert.deepEqual(await client.scripts({ owner }), []);
  assert.equal((await client.putBudget(owner, 5)).maxQueriesPerMonth, 5);
  assert.equal((await client.putBudget(owner, { maxTokensPerMonth: 7 })).maxTokensPerMonth, 7);
  await client.deleteBudget(owner);
  assert.ok((await client.overview()).tasks);
  assert.ok(Array.isArray(await client.queues()) && Array.isArray(await client.workers()));
  assert.ok((await client.usage()).month && (await client.budgets()).budgets);
  assert.deepEqual(await client.locks().take(1), []);
  const day = 86_400_000;
  const query = { owner, from: new Date(Date.now() - day).toISOString(), until: new Date().toISOString(), timezone: "UTC" };
  assert.ok((await client.countExecutions(query)).parts.length);
  assert.ok(Array.isArray(await client.findExecutions({ owner }).take(1)));
});
