import type { Message } from "./api.js";

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
  query(reference: any, ...constraints: any[]): any;
  orderBy(field: string, direction: "asc" | "desc"): any;
  limit(count: number): any;
  onSnapshot(query: any, next: (snapshot: any) => void, error: (error: any) => void): () => void;
}

export interface LiveInboxOptions {
  /** Is called with the latest messages, the newest first, now and whenever one has changed. */
  next: (messages: Message[]) => void;
  /** Is called if Firestore refuses or ends it. */
  error?: (error: Error) => void;
  /** The most messages; 50 if omitted. */
  limit?: number;
}

/**
 * Show an owner's inbox as Firestore pushes it; return what ends that.
 *
 *     import { getApp } from "firebase/app";
 *     import * as firestore from "firebase/firestore";
 *     const stop = liveInbox(firestore, firestore.getFirestore(getApp(), "cloudsched"), uid, { next: show });
 */
export function liveInbox(module: FirestoreModule, database: unknown, owner: string, options: LiveInboxOptions): () => void {
  const messages = module.collection(database, "inboxes", owner, "messages");
  const latest = module.query(messages, module.orderBy("createdAt", "desc"), module.limit(options.limit ?? 50));
  const next = (snapshot: { docs: Array<{ id: string; data(): Record<string, unknown> }> }) =>
    options.next(snapshot.docs.map((each) => toMessage(each.id, each.data())));
  return module.onSnapshot(latest, next, options.error ?? (() => undefined));
}

/** Return a document as the API shows the message: Firestore has its instants as objects. */
function toMessage(id: string, data: Record<string, unknown>): Message {
  const shown: Record<string, unknown> = { id, isRead: false };
  for (const [name, value] of Object.entries(data)) {
    const at = value as { toDate?: () => Date } | null;
    shown[name] = typeof at?.toDate === "function" ? at.toDate().toISOString() : value;
  }
  return shown as unknown as Message;
}
