// What compiles, and what must not; tests/clients/test_typescript.py compiles it against the built package.
import { Client, InvalidInput, type Task, type TaskInput, type Verb } from "cloudsched";
import type { Payloads } from "./payloads.js";

const plain = new Client("https://api.example", { token: async (refresh: boolean) => (refresh ? "b" : "a") });
const typed = new Client<Payloads>("https://api.example", { key: "k" });

export async function use(): Promise<Task> {
  await plain.create({ title: "T", handler: "anything", payload: { any: ["thing"] }, schedule: "every day at 9" });
  await plain.create({ title: "T", handler: "h", schedule: { rrule: "FREQ=DAILY" }, retry: { maxRetries: 2 } });
  await typed.create({ handler: "greet", payload: { name: "Ada" } });
  await typed.create({ handler: "echo" });
  await typed.create({ title: "By workers and scripts", script: { source: "return 1" } });
  await typed.runNow("greet", { name: "Ada", times: 2 });
  const one: TaskInput<Payloads> = { handler: "greet", payload: { name: "Ada" } };

  // @ts-expect-error - a field is misspelt
  await plain.create({ titel: "T" });
  // @ts-expect-error - a payload without what its handler needs
  await typed.create({ handler: "greet", payload: {} });
  // @ts-expect-error - a payload with a wrong type
  await typed.create({ handler: "greet", payload: { name: 1 } });
  // @ts-expect-error - no payload, though it is needed
  await typed.create({ handler: "greet" });
  // @ts-expect-error - no such handler
  await typed.create({ handler: "great", payload: { name: "Ada" } });
  // @ts-expect-error - a status that there is not
  plain.tasks({ status: "DONE" });
  // @ts-expect-error - an end is needed
  plain.occurrences();
  // @ts-expect-error - no such action
  await plain.batchChange("explode", { owner: "ada" });

  const verbs: Verb[] = [];
  for await (const task of plain.tasks({ owner: "ada", status: "ACTIVE" })) verbs.push(...(task.allowedVerbs ?? []));
  const [created] = await typed.createMany([one]);
  if (created?.error instanceof InvalidInput) throw created.error;
  const next: string | undefined = created?.task?.nextExecutionTime;
  return { ...(await plain.get("t")), ...(next === undefined ? {} : { nextExecutionTime: next }) };
}
