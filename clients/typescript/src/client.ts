import { TaskVerbs } from "./api.js";
import { CloudschedError, NotFound, QuotaExceeded, TimedOut, toError, Unavailable } from "./errors.js";
import { encode, pause, Transport } from "./transport.js";
import type { ClientOptions, Query, RequestOptions } from "./transport.js";
import type * as api from "./api.js";

/** Payloads by handlers' names; `cloudsched schema --typescript` prints yours. */
export type AnyPayloads = Record<string, Record<string, unknown>>;

type Named<P extends object, N extends keyof P> = {} extends P[N] ? { handler: N; payload?: P[N] } : { handler: N; payload: P[N] };

/** A new task, whose payload is that of its handler. */
export type TaskInput<P extends object = AnyPayloads> = string extends keyof P
  ? api.NewTask
  :
      | { [N in keyof P]: Omit<api.NewTask, "handler" | "payload"> & Named<P, N> }[keyof P]
      | (Omit<api.NewTask, "handler"> & { handler?: undefined });

/** What becomes of one task of many. */
export type Created = { task: api.Task; error?: undefined } | { task?: undefined; error: CloudschedError };

type Filters<Q> = Omit<Q, "pageToken">;

export interface ChangeOptions extends RequestOptions {
  /** Commands with the same key do this once; a new one is made for each call if it is omitted. */
  idempotencyKey?: string;
  /** Do it only if the task is in the state with this ETag. */
  etag?: string;
}

export interface PersonOptions extends RequestOptions {
  /** Do it only if the person is in the state with this ETag. */
  etag?: string;
}

export interface PutPersonOptions extends PersonOptions {
  /** Also remove what the body leaves out. */
  replace?: boolean;
}

export interface WatchOptions extends RequestOptions {
  /** How many milliseconds there are between two looks; 5,000 if omitted. */
  interval?: number;
}

/** Some of a list, fetched page by page while it is read: `for await (const task of client.tasks())`. */
export class Listing<T> implements AsyncIterable<T> {
  readonly #fetchPage: (token: string | undefined) => Promise<{ items: T[]; next: string | undefined }>;

  constructor(fetchPage: (token: string | undefined) => Promise<{ items: T[]; next: string | undefined }>) {
    this.#fetchPage = fetchPage;
  }

  async *pages(): AsyncGenerator<T[], void, undefined> {
    let token: string | undefined;
    do {
      const page = await this.#fetchPage(token);
      token = page.next;
      yield page.items;
    } while (token !== undefined);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page;
  }

  /** Return the first items, at most so many. */
  async take(count: number): Promise<T[]> {
    const found: T[] = [];
    if (count <= 0) return found;
    for await (const each of this) if (found.push(each) >= count) break;
    return found;
  }
}

const BATCH = 50;

/** A client of the HTTP API, with the verbs of the Python client. */
export class Client<P extends object = AnyPayloads> extends TaskVerbs {
  readonly #transport: Transport;

  constructor(url: string, options?: ClientOptions);
  /** @internal */
  constructor(transport: Transport);
  constructor(where: string | Transport, options: ClientOptions = {}) {
    super();
    this.#transport = typeof where === "string" ? new Transport(where, options) : where;
  }

  /** Return a client that acts for a user, with exactly that user's authority. */
  actingFor(user: string): Client<P> {
    return new Client<P>(this.#transport.with({ actingFor: user }));
  }

  // Tasks

  /** Create a task, or edit the one with the same `id`. Without a schedule it runs once, now. */
  create(task: TaskInput<P>, options: ChangeOptions = {}): Promise<api.Task> {
    const fields = task as api.NewTask;
    const isNamed = fields.id !== undefined || fields.draftToken !== undefined;
    return this.#post("/v1/tasks", fields, isNamed ? options : withKey(options), undefined, true);
  }

  /** Run a handler once, now, as a task of its own. */
  runNow<N extends keyof P & string>(handler: N, payload?: P[N], fields: Omit<api.NewTask, "handler" | "payload" | "schedule"> = {}, options: ChangeOptions = {}): Promise<api.Task> {
    return this.create({ ...fields, handler, ...(payload === undefined ? {} : { payload }) } as TaskInput<P>, options);
  }

  /** Create tasks, 50 with each request; the results are in the same order, each a task or an error. */
  async createMany(tasks: ReadonlyArray<TaskInput<P>>, options: ChangeOptions = {}): Promise<Created[]> {
    const { idempotencyKey: key = crypto.randomUUID(), ...more } = options;
    const created: Created[] = [];
    for (let begin = 0; begin < tasks.length; begin += BATCH) {
      const body = { tasks: tasks.slice(begin, begin + BATCH) };
      const idempotencyKey = begin ? `${key}-${begin}` : key;
      const { results } = await this.#post<api.BatchResults>("/v1/tasks/batchCreate", body, { ...more, idempotencyKey }, undefined, true, key);
      for (const { task, problem, status } of results) created.push(task ? { task } : { error: toError(status, problem) });
    }
    return created;
  }

  /** Return a task as it would be created, or changed if an id is given, with its next occurrences; nothing is stored. */
  validateTask(fields: TaskInput<P>, options?: RequestOptions): Promise<api.Task>;
  validateTask(fields: api.TaskPatch, options: RequestOptions & { taskId: string }): Promise<api.Task>;
  validateTask(fields: unknown, { taskId, ...options }: RequestOptions & { taskId?: string } = {}): Promise<api.Task> {
    const query = { validateOnly: "true" };
    return taskId === undefined
      ? this.#post("/v1/tasks", fields, options, query, true)
      : this.#send("PATCH", task_(taskId), fields, options, query, true);
  }

  get(taskId: string, options?: RequestOptions): Promise<api.Task> {
    return this.#get(task_(taskId), undefined, options);
  }

  tasks(filters: Filters<api.ListTasksQuery> = {}, options?: RequestOptions): Listing<api.Task> {
    return this.#list("/v1/tasks", "tasks", filters, options);
  }

  /** Change the fields that are given; `null` restores a default. */
  update(taskId: string, changes: api.TaskPatch, options: ChangeOptions = {}): Promise<api.Task> {
    return this.#send("PATCH", task_(taskId), changes, withKey(options), undefined, true);
  }

  async delete(taskId: string, options: ChangeOptions = {}): Promise<void> {
    await this.#send("DELETE", task_(taskId), undefined, withKey(options));
  }

  tree(taskId: string, query: api.TreeQuery = {}, options?: RequestOptions): Promise<api.Tree> {
    return this.#get(`${task_(taskId)}/tree`, query, options);
  }

  /** Explain why a task runs when it does, or does not run; or why on the day of an instant. */
  explain(taskId: string, query: api.ExplainTaskQuery = {}, options?: RequestOptions): Promise<api.Explanation> {
    return this.#get(`${task_(taskId)}/explain`, query, options);
  }

  history(taskId: string, options?: RequestOptions): Promise<api.TaskHistory> {
    return this.#get(`${task_(taskId)}/history`, undefined, options);
  }

  async upcoming(taskId: string, query: api.UpcomingQuery = {}, options?: RequestOptions): Promise<api.Occurrence[]> {
    return (await this.#get<api.OccurrenceList>(`${task_(taskId)}/upcoming`, query, options)).occurrences;
  }

  /** Return a task's latest execution once the task has ended and none of its runs is open. Throws `TimedOut`. */
  async wait(taskId: string, { timeout = 300_000, interval = 1_000, signal }: WatchOptions = {}): Promise<api.Execution> {
    const until = Date.now() + timeout;
    for (let wait = interval; ; wait = Math.min(wait * 1.5, interval * 10)) {
      const left = until - Date.now();
      const options = { timeout: Math.max(5_000, left), ...(signal && { signal }) };
      try {
        const task = await this.get(taskId, options);
        const [latest] = task.status === "ACTIVE" || task.status === "PAUSED" ? [] : await this.executions(taskId, options).take(1);
        if (latest && !["RUNNING", "RETRYING", "SUSPENDED"].includes(latest.status)) return latest;
        if (!latest && task.status !== "ACTIVE" && task.status !== "PAUSED") throw new NotFound(`Task ${taskId} has ended without an execution.`, 404);
      } catch (error) {
        if (!(error instanceof Unavailable || error instanceof QuotaExceeded) || left <= 0) throw error;
      }
      if (left <= 0) throw new TimedOut(`Task ${taskId} has not ended within ${timeout} ms.`);
      await pause(Math.min(wait, left), signal);
    }
  }

  // What has run and will run

  executions(taskId: string, options?: RequestOptions): Listing<api.Execution> {
    return this.#list(`${task_(taskId)}/executions`, "executions", {}, options);
  }

  execution(taskId: string, executionId: string, options?: RequestOptions): Promise<api.Execution> {
    return this.#get(run(taskId, executionId), undefined, options);
  }

  logs(taskId: string, executionId: string, options?: RequestOptions): Promise<api.ExecutionLogs> {
    return this.#get(`${run(taskId, executionId)}/logs`, undefined, options);
  }

  async deliveries(taskId: string, executionId: string, options?: RequestOptions): Promise<api.DeliveryReport[]> {
    return (await this.#get<api.DeliveryList>(`${run(taskId, executionId)}/deliveries`, undefined, options)).deliveries;
  }

  /** List executions of all tasks: those that failed first, then those that run, then all others. */
  findExecutions(filters: Filters<api.FindExecutionsQuery> = {}, options?: RequestOptions): Listing<api.Execution> {
    return this.#list("/v1/executions", "executions", filters, options);
  }

  /** Count the failed executions that `batchRetry` would retry now, and name the first ten. */
  countRetries(filter: api.ExecutionRetryFilter, options: RequestOptions = {}): Promise<api.RetryCount> {
    return this.#post("/v1/executions/batchRetry", { filter, dryRun: true }, options, undefined, true);
  }

  /** Start to retry all failed executions that match; return the task that does it. */
  batchRetry(filter: api.ExecutionRetryFilter, options: ChangeOptions = {}): Promise<api.Task> {
    return this.#post("/v1/executions/batchRetry", { filter }, withKey(options), undefined, true);
  }

  /** List what was sent to somebody and with what result; of all owners, what has failed. */
  deliveriesOf(filters: Filters<api.ListOwnerDeliveriesQuery> = {}, options?: RequestOptions): Listing<api.DeliveryReport> {
    return this.#list("/v1/deliveries", "deliveries", filters, options);
  }

  /** Send once more what was not sent, perhaps to another e-mail address, which the person then has. */
  resend(deliveryId: string, body: api.ResendRequest = {}, options: ChangeOptions = {}): Promise<api.DeliveryReport> {
    return this.#post(`/v1/deliveries/${encode(deliveryId)}/resend`, body, withKey(options), undefined, true);
  }

  /** Count how many executions ended on each day of a zone: what failed, and all others. */
  countExecutions(query: api.CountExecutionsQuery, options?: RequestOptions): Promise<api.ExecutionCounts> {
    return this.#get("/v1/executions/counts", query, options);
  }

  /** List what is going to run before an instant, of all tasks, the soonest first. */
  occurrences(until: Date | string, filters: Filters<Omit<api.ListOccurrencesQuery, "until">> = {}, options?: RequestOptions): Listing<api.TaskOccurrence> {
    return this.#list("/v1/occurrences", "occurrences", { ...filters, until: instant(until) }, options);
  }

  /** Yield a text whenever something may have changed: at once, after a task has changed, and once a minute. */
  async *changes(query: api.GetChangeCursorQuery = {}, { interval = 5_000, ...options }: WatchOptions = {}): AsyncGenerator<string, void, undefined> {
    for (let last: string | undefined; ; await pause(interval, options.signal)) {
      const cursor = await this.changeCursor(query, options);
      if (cursor !== last) yield (last = cursor);
    }
  }

  /** Yield the matching tasks, at most 500: at once, and whenever one of them has changed. Break, or abort the signal, to end it. */
  async *watch(filters: Omit<Filters<api.ListTasksQuery>, "pageSize"> = {}, options: WatchOptions = {}): AsyncGenerator<api.Task[], void, undefined> {
    let last = "";
    const { interval: _, ...request } = options;
    for await (const __ of this.changes(filters.owner ? { owner: filters.owner } : {}, options)) {
      const { tasks } = await this.#get<api.TaskPage>("/v1/tasks", { ...filters, pageSize: 500 }, request);
      const shown = JSON.stringify(tasks);
      if (shown !== last) yield tasks;
      last = shown;
    }
  }

  async changeCursor(query: api.GetChangeCursorQuery = {}, options?: RequestOptions): Promise<string> {
    return (await this.#get<api.ChangeCursor>("/v1/changes", query, options)).cursor;
  }

  overview(query: api.GetOverviewQuery = {}, options?: RequestOptions): Promise<api.OverviewCounts> {
    return this.#get("/v1/overview", query, options);
  }

  /** Find what has all words of a text in its name: tasks, owners, handlers and labels. */
  searchNames(text: string, query: Omit<api.SearchNamesQuery, "q"> = {}, options?: RequestOptions): Promise<api.SearchResults> {
    return this.#get("/v1/search", { ...query, q: text }, options);
  }

  /** List who did what to tasks, budgets and queues, the latest first. */
  audit(filters: Filters<api.ListAuditEntriesQuery> = {}, options?: RequestOptions): Listing<api.AuditEntry> {
    return this.#list("/v1/audit", "entries", filters, options);
  }

  /** Start to change all tasks that match; return the task that does it. A pause may have an end, an instant. */
  batchChange(
    action: api.BatchAction,
    filter: api.BatchChangeFilter,
    { until, ...options }: ChangeOptions & { until?: string } = {},
  ): Promise<api.Task> {
    return this.#post("/v1/tasks/batchChange", { action, filter, until }, withKey(options), undefined, true);
  }

  /** Start to pause all active tasks, of an owner or of all; return the task that does it. Its id is for `restore`. */
  pauseAll(owner?: string, options: ChangeOptions & { until?: string } = {}): Promise<api.Task> {
    return this.batchChange("PAUSE", { status: "ACTIVE", ...(owner === undefined ? {} : { owner }) }, options);
  }

  /** Start to resume what `pauseAll`, or another change of many tasks, has paused; return the task that does it. */
  restore(pauseId: string, options: ChangeOptions = {}): Promise<api.Task> {
    return this.batchChange("RESUME", { pauseId }, options);
  }

  /** List the tasks that have each of some words in their title, id, handler, labels or payload. */
  search(words: string, filters: Filters<api.ListTasksQuery> = {}, options?: RequestOptions): Listing<api.Task> {
    return this.tasks({ ...filters, search: words }, options);
  }

  // Schedules and drafts

  /** Return what a schedule means, in words, and its next occurrences. */
  preview(body: api.PreviewRequest, options: RequestOptions = {}): Promise<api.SchedulePreview> {
    return this.#post("/v1/schedules/preview", body, options, undefined, true);
  }

  /** The same for words or a notation, such as `every weekday at 9`. */
  describeSchedule(schedule: string, timezone: string, options: RequestOptions = {}): Promise<api.SchedulePreview> {
    return this.preview({ schedule, timezone }, options);
  }

  /** Return what somebody asks for in their words; nothing is stored. */
  draft(body: api.DraftRequest, options: RequestOptions = {}): Promise<api.DraftResult> {
    return this.#post("/v1/tasks/draft", body, options, undefined, true);
  }

  /** Store what a draft shows. Safe to repeat. */
  async confirm(draft: api.DraftResult, options: RequestOptions = {}): Promise<api.Task> {
    const { draftToken, taskId, task, changes } = draft;
    if (draftToken === undefined) throw new TypeError("The draft is not complete: answer its questions, and draft again.");
    return taskId === undefined
      ? this.#post("/v1/tasks", { ...task, draftToken }, options, undefined, true)
      : this.#send("PATCH", task_(taskId), { ...changes, draftToken }, options, undefined, true);
  }

  async handlers(options?: RequestOptions): Promise<api.HandlerInfo[]> {
    return (await this.#get<api.HandlerList>("/v1/handlers", undefined, options)).handlers;
  }

  // People

  inbox(owner: string, options?: RequestOptions): Listing<api.Message> {
    return this.#list(`/v1/inboxes/${encode(owner)}/messages`, "messages", {}, options);
  }

  unread(owner: string, options?: RequestOptions): Promise<api.Count> {
    return this.#get(`/v1/inboxes/${encode(owner)}/unread`, undefined, options);
  }

  markRead(owner: string, messageId: string, options: RequestOptions = {}): Promise<api.Message> {
    return this.#post(`/v1/inboxes/${encode(owner)}/messages/${encode(messageId)}/read`, undefined, options, undefined, true);
  }

  person(owner: string, options?: RequestOptions): Promise<api.Person> {
    return this.#get(person_(owner), undefined, options);
  }

  /** Store a person, or replace all that is stored of them. What would remove something needs `replace` or an `etag`. */
  putPerson(owner: string, body: api.NewPerson, { replace = false, ...options }: PutPersonOptions = {}): Promise<api.SavedPerson> {
    return this.#send("PUT", person_(owner), body, options, replace ? { replace: "true" } : undefined);
  }

  /** Change some of a person's contacts and preferences: all others stay, and null removes one. */
  updatePerson(owner: string, changes: api.PersonPatch, options?: PersonOptions): Promise<api.SavedPerson> {
    return this.#send("PATCH", person_(owner), changes, options, undefined, true);
  }

  async deletePerson(owner: string, options?: RequestOptions): Promise<void> {
    await this.#send("DELETE", person_(owner), undefined, options);
  }

  /** Start to delete all that is stored of a person; return the task that does it. */
  erasePerson(owner: string, options?: RequestOptions): Promise<api.Task> {
    return this.#send("DELETE", person_(owner), undefined, options, { everything: "true" });
  }

  /** Return all that is stored of a person, as lines of JSON, once it has been put together. */
  async exportPerson(owner: string, { timeout = 3_600_000, interval = 1_000, signal }: WatchOptions = {}): Promise<string> {
    const until = Date.now() + timeout;
    const texts: string[] = [];
    for (let query: api.ExportPersonQuery = {}; ; ) {
      const page = await this.#post<Partial<api.ExportPage>>(`${person_(owner)}/export`, undefined, signal ? { signal } : {}, query, true);
      if (page.text !== undefined) {
        texts.push(page.text);
        if (page.nextPageToken === undefined) return texts.join("");
        query = { pageToken: page.nextPageToken };
      } else if (Date.now() > until) {
        throw new TimedOut(`The export of ${owner} is not ready.`);
      } else {
        await pause(interval, signal);
      }
    }
  }

  verifyChat(owner: string, chat: "telegram" | "slack", options: RequestOptions = {}): Promise<api.Person> {
    return this.#post(`${person_(owner)}/chats/${chat}/verify`, undefined, options);
  }

  verifyWebhook(owner: string, options: RequestOptions = {}): Promise<api.Person> {
    return this.#post(`${person_(owner)}/webhook/verify`, undefined, options);
  }

  async rotateWebhookSecret(owner: string, options: RequestOptions = {}): Promise<string> {
    return (await this.#post<api.WebhookSecret>(`${person_(owner)}/webhook/rotate`, undefined, options)).webhookSecret;
  }

  // Calendars, feeds and scripts

  createFeed(body: api.NewFeed = {}, options: RequestOptions = {}): Promise<api.NewFeedAddress> {
    return this.#post("/v1/feeds", body, options);
  }

  async feeds(query: api.ListFeedsQuery = {}, options?: RequestOptions): Promise<api.Feed[]> {
    return (await this.#get<api.FeedList>("/v1/feeds", query, options)).feeds;
  }

  async deleteFeed(feedId: string, options?: RequestOptions): Promise<void> {
    await this.#send("DELETE", `/v1/feeds/${encode(feedId)}`, undefined, options);
  }

  putCalendar(calendarId: string, body: api.PutCalendar, options?: RequestOptions): Promise<api.CalendarDetails> {
    return this.#send("PUT", `/v1/calendars/${encode(calendarId)}`, body, options);
  }

  calendar(calendarId: string, query: api.GetCalendarQuery = {}, options?: RequestOptions): Promise<api.CalendarDetails> {
    return this.#get(`/v1/calendars/${encode(calendarId)}`, query, options);
  }

  async calendars(query: api.ListCalendarsQuery = {}, options?: RequestOptions): Promise<api.CalendarSummary[]> {
    return (await this.#get<api.CalendarList>("/v1/calendars", query, options)).calendars;
  }

  async deleteCalendar(calendarId: string, query: api.DeleteCalendarQuery = {}, options?: RequestOptions): Promise<void> {
    await this.#send("DELETE", `/v1/calendars/${encode(calendarId)}`, undefined, options, query);
  }

  putScript(name: string, body: api.PutScript, options?: RequestOptions): Promise<api.ScriptDetails> {
    return this.#send("PUT", `/v1/scripts/${encode(name)}`, body, options);
  }

  script(name: string, query: api.GetScriptQuery = {}, options?: RequestOptions): Promise<api.ScriptDetails> {
    return this.#get(`/v1/scripts/${encode(name)}`, query, options);
  }

  async scripts(query: api.ListScriptsQuery = {}, options?: RequestOptions): Promise<api.ScriptSummary[]> {
    return (await this.#get<api.ScriptList>("/v1/scripts", query, options)).scripts;
  }

  async deleteScript(name: string, query: api.DeleteScriptQuery = {}, options?: RequestOptions): Promise<void> {
    await this.#send("DELETE", `/v1/scripts/${encode(name)}`, undefined, options, query);
  }

  // Operation

  async queues(query: api.ListQueuesQuery = {}, options?: RequestOptions): Promise<api.Queue[]> {
    return (await this.#get<api.QueueList>("/v1/queues", query, options)).queues;
  }

  /** The queues in Cloud Tasks that carry dispatches. Those below are for admins. */
  async dispatchQueues(options?: RequestOptions): Promise<api.DispatchQueue[]> {
    return (await this.#get<api.DispatchQueueList>("/v1/dispatch-queues", {}, options)).queues;
  }

  /** Delete all dispatches of a queue. The sweep sends what is still to run within a minute or two of its time. */
  purgeDispatchQueue(queue: string, options: RequestOptions = {}): Promise<api.DispatchQueue> {
    return this.#post(`/v1/dispatch-queues/${encode(queue)}/purge`, undefined, options, undefined, true);
  }

  /** Pause or resume a queue, or change how fast it delivers. */
  updateDispatchQueue(queue: string, change: api.PatchDispatchQueue, options?: RequestOptions): Promise<api.DispatchQueue> {
    return this.#send("PATCH", `/v1/dispatch-queues/${encode(queue)}`, change, options);
  }

  queuedTasks(queue: string, filters: Filters<api.ListQueuedTasksQuery> = {}, options?: RequestOptions): Listing<api.QueuedTask> {
    return this.#list(`/v1/queues/${encode(queue)}/tasks`, "tasks", filters, options);
  }

  async workers(query: api.ListWorkersQuery = {}, options?: RequestOptions): Promise<api.WorkerNote[]> {
    return (await this.#get<api.WorkerList>("/v1/workers", query, options)).workers;
  }

  locks(filters: Filters<api.ListLocksQuery> = {}, options?: RequestOptions): Listing<api.LockDetails> {
    return this.#list("/v1/locks", "locks", filters, options);
  }

  usage(query: api.GetUsageQuery = {}, options?: RequestOptions): Promise<api.UsagePage> {
    return this.#get("/v1/usage", query, options);
  }

  budgets(query: api.ListBudgetsQuery = {}, options?: RequestOptions): Promise<api.BudgetPage> {
    return this.#get("/v1/budgets", query, options);
  }

  budget(owner: string, options?: RequestOptions): Promise<api.BudgetDetails> {
    return this.#get(`${person_(owner)}/budget`, undefined, options);
  }

  /** Set how much an owner's tasks may use in a month: queries if it is a number, else queries, tokens or both. */
  putBudget(owner: string, limits: number | api.PutBudget, options?: RequestOptions): Promise<api.BudgetDetails> {
    const body = typeof limits === "number" ? { maxQueriesPerMonth: limits } : limits;
    return this.#send("PUT", `${person_(owner)}/budget`, body, options);
  }

  async deleteBudget(owner: string, options?: RequestOptions): Promise<void> {
    await this.#send("DELETE", `${person_(owner)}/budget`, undefined, options);
  }

  // Workers

  /** Claim work from a queue. It is sent only once: if its answer is lost, the work is offered again when the lease ends. */
  async claim(queue: string, body: api.ClaimRequest = {}, options: RequestOptions = {}): Promise<api.Claim[]> {
    const limits = { timeout: this.#transport.timeout + 1_000 * Math.max(0, Number(body.wait ?? 0)), ...options };
    return (await this.#post<api.ClaimList>(`/v1/queues/${encode(queue)}/claim`, body, limits)).claims;
  }

  heartbeat(claim: api.Claim, body: Omit<api.HeartbeatRequest, "leaseToken"> = {}, options?: RequestOptions): Promise<api.RenewedLease> {
    return this.#report(claim, "heartbeat", body, options);
  }

  complete(claim: api.Claim, body: Omit<api.CompleteRequest, "leaseToken"> = {}, options?: RequestOptions): Promise<api.ReportedTask> {
    return this.#report(claim, "complete", body, options);
  }

  fail(claim: api.Claim, body: Omit<api.FailRequest, "leaseToken">, options?: RequestOptions): Promise<api.FailedTask> {
    return this.#report(claim, "fail", body, options);
  }

  release(claim: api.Claim, body: Omit<api.ReleaseRequest, "leaseToken"> = {}, options?: RequestOptions): Promise<api.ReportedTask> {
    return this.#report(claim, "release", body, options);
  }

  #report<T>(claim: api.Claim, verb: string, body: object, options: RequestOptions = {}): Promise<T> {
    return this.#post(`${run(claim.task.id, claim.executionId)}/${verb}`, { ...body, leaseToken: claim.leaseToken }, options, undefined, true);
  }

  /** @internal */
  protected override _change(path: string, body?: object, options: ChangeOptions = {}, query?: Query): Promise<api.Task> {
    return this.#post(path, body, withKey(options), query, true);
  }

  #get<T>(path: string, query?: Query, options?: RequestOptions): Promise<T> {
    return this.#send("GET", path, undefined, options, query);
  }

  #post<T>(path: string, body: unknown, options: ChangeOptions, query?: Query, repeatable = false, repeatKey?: string): Promise<T> {
    return this.#send("POST", path, body, options, query, repeatable, repeatKey);
  }

  #send<T>(method: string, path: string, body?: unknown, given: ChangeOptions = {}, query?: Query, repeatable?: boolean, repeatKey?: string): Promise<T> {
    const { idempotencyKey, etag, ...options } = given;
    const headers: Record<string, string> = {};
    if (idempotencyKey !== undefined) headers["Idempotency-Key"] = idempotencyKey;
    if (etag !== undefined) headers["If-Match"] = etag;
    return this.#transport.send({ method, path, body, query, headers, options, repeatKey, ...(repeatable !== undefined && { repeatable }) }) as Promise<T>;
  }

  #list<T>(path: string, field: string, filters: object, options?: RequestOptions): Listing<T> {
    return new Listing<T>(async (pageToken) => {
      const page = await this.#get<Record<string, unknown>>(path, { ...filters, pageToken }, options);
      return { items: page[field] as T[], next: page["nextPageToken"] as string | undefined };
    });
  }
}

function withKey(options: ChangeOptions): ChangeOptions {
  return { ...options, idempotencyKey: options.idempotencyKey ?? crypto.randomUUID() };
}

function task_(taskId: string): string {
  return `/v1/tasks/${encode(taskId)}`;
}

function run(taskId: string, executionId: string): string {
  return `${task_(taskId)}/executions/${encode(executionId)}`;
}

function person_(owner: string): string {
  return `/v1/people/${encode(owner)}`;
}

function instant(at: Date | string): string {
  return typeof at === "string" ? at : at.toISOString();
}
