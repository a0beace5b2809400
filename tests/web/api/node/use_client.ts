// Creates, lists and claims tasks with types generated from /openapi.json. The compiler checks each request and response.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

type NewTask = components["schemas"]["NewTask"];
type Task = components["schemas"]["Task"];

declare const process: { argv: string[] };

const client = createClient<paths>({ baseUrl: process.argv[2] });

function requireData<T>(response: { data?: T; error?: unknown }): T {
  if (response.data === undefined) throw new Error(JSON.stringify(response.error));
  return response.data;
}

const draft: NewTask = {
  owner: "ada",
  title: "From TypeScript",
  handler: "greet",
  payload: { name: "Ada" },
  schedule: { rrule: "FREQ=DAILY", timezone: "Europe/Paris" },
  expectedDuration: 60,
};
const created: Task = requireData(await client.POST("/v1/tasks", { body: draft }));
const page = requireData(await client.GET("/v1/tasks", { params: { query: { owner: "ada", pageSize: 10 } } }));
const claimed = requireData(
  await client.POST("/v1/queues/{queue}/claim", { params: { path: { queue: "gpu" } }, body: { worker: "node" } }),
);
const refused = await client.GET("/v1/tasks/{taskId}", { params: { path: { taskId: "absent" } } });
console.log(
  JSON.stringify({
    created: [created.status, created.expectedDuration, created.schedule.timezone],
    listed: page.tasks.map((task) => task.title),
    claimed: claimed.claims.map((claim) => claim.task.title),
    refused: refused.error?.status,
  }),
);
