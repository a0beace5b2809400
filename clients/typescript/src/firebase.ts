import type { Message, Task } from "./api.js";

/** What is used of a user of `firebase/auth`. */
export interface FirebaseUser {
  getIdToken(forceRefresh?: boolean): Promise<string>;
}

/** Return a client's `token` for whoever is signed in: `new Client(url, { token: firebaseToken(getAuth()) })`. */
export function firebaseToken(auth: { currentUser: FirebaseUser | null }): (refresh: boolean) => Promise<string | undefined> {
  return async (refresh) => auth.currentUser?.getIdToken(refresh);
}

/* eslint-disable @typescript-eslint/no-explicit-any -- the module's own types are overloaded and generic */
/** What is used of the module `firebase/firestore`: pass the module itself. */
export interface FirestoreModule {
  collection(database: any, path: string, ...segments: string[]): any;
  doc(database: any, path: string, ...segments: string[]): any;
  query(reference: any, ...constraints: any[]): any;
  orderBy(field: string, direction: "asc" | "desc"): any;
  limit(count: number): any;
  onSnapshot(target: any, next: (snapshot: any) => void, error: (error: any) => void): () => void;
}

export interface LiveInboxOptions {
  /** Is called with the latest messages, the newest first, now and whenever one has changed. */
  next: (messages: Message[]) => void;
  /** Is called if Firestore refuses or ends it. */
  error?: (error: Error) => void;
  /** The most messages; 50 if omitted. */
  limit?: number;
  /** With what the deployment's collections begin: its `COLLECTION_PREFIX`, if it has one. */
  prefix?: string;
}

/**
 * Show an owner's inbox as Firestore pushes it; return what ends that.
 *
 *     import { getApp } from "firebase/app";
 *     import * as firestore from "firebase/firestore";
 *     const stop = liveInbox(firestore, firestore.getFirestore(getApp(), "cloudsched"), uid, { next: show });
 */
export function liveInbox(module: FirestoreModule, database: unknown, owner: string, options: LiveInboxOptions): () => void {
  const prefix = options.prefix ?? "";
  const messages = module.collection(database, `${prefix}inboxes`, owner, `${prefix}messages`);
  const latest = module.query(messages, module.orderBy("createdAt", "desc"), module.limit(options.limit ?? 50));
  const next = (snapshot: { docs: Array<{ id: string; data(): Record<string, unknown> }> }) =>
    options.next(snapshot.docs.map((each) => toMessage(each.id, each.data())));
  return module.onSnapshot(latest, next, options.error ?? (() => undefined));
}

type Stored<T> = T extends Array<infer Item> ? Array<Stored<Item>> : T extends object ? { [Field in keyof T]?: Stored<T[Field]> } : T;
type Always = "category" | "createdAt" | "handler" | "id" | "isOneTime" | "owner" | "revision" | "status" | "statusChangedAt" | "timezone" | "title" | "updatedAt";

/** A task as the API shows it, without the fields that have their default, and those that the API derives from others. */
export type LiveTask = Stored<Task> & Pick<Task, Always>;

export interface LiveTaskOptions {
  /** Is called with the task, now and whenever it has changed. Null: there is none, or it is being deleted. */
  next: (task: LiveTask | null) => void;
  /** Is called if Firestore refuses or ends it. Users are refused another user's task, and one that is gone. */
  error?: (error: Error) => void;
  /** With what the deployment's collections begin: its `COLLECTION_PREFIX`, if it has one. */
  prefix?: string;
}

/**
 * Show a task as Firestore pushes it; return what ends that.
 *
 *     const stop = liveTask(firestore, firestore.getFirestore(getApp(), "cloudsched"), taskId, { next: show });
 */
export function liveTask(module: FirestoreModule, database: unknown, taskId: string, options: LiveTaskOptions): () => void {
  const next = (found: { id: string; metadata: { fromCache: boolean }; data(): Record<string, unknown> | undefined }) => {
    const data = found.data();
    if (data !== undefined) options.next("deletedAt" in data ? null : toTask(found.id, data));
    else if (!found.metadata.fromCache) options.next(null); // a client that is offline does not know
  };
  return module.onSnapshot(module.doc(database, `${options.prefix ?? ""}tasks`, taskId), next, options.error ?? (() => undefined));
}

function toTask(id: string, { private: _, unlisted, ...data }: Record<string, unknown>): LiveTask {
  return toShown({ id, ...data, ...(unlisted as object | undefined) }) as LiveTask;
}

/** Return a document as the API shows the message. */
function toMessage(id: string, data: Record<string, unknown>): Message {
  return toShown({ id, isRead: false, ...data }) as Message;
}

/** Return a value as the API shows it: Firestore has instants as objects, and a list in a list as the bytes of its JSON. */
function toShown(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(toShown);
  const special = value as { toDate?: unknown; toUint8Array?: unknown };
  if (typeof special.toDate === "function") return special.toDate().toISOString();
  if (typeof special.toUint8Array === "function") return JSON.parse(new TextDecoder().decode(special.toUint8Array()));
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, toShown(each)]));
}
