// A typed client of jig's HTTP API. The types in schema.ts are generated from the OpenAPI document by `make api`.
import createClient, { type Client, type ClientOptions } from "openapi-fetch";
import type { components, paths } from "./schema.js";

export type { components, operations, paths } from "./schema.js";
export type Event = components["schemas"]["Event"];
export type Problem = components["schemas"]["Problem"];
export type Jig = Client<paths>;

/** Returns a client of the server at url that sends an API key with each request. */
export function jig(url: string, key: string, options: ClientOptions = {}): Jig {
  const headers = { Authorization: `Bearer ${key}` };
  return createClient<paths>({ ...options, baseUrl: url, headers });
}

/** The error of a request that the server has refused. */
export class Refused extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(`${problem.code}: ${problem.detail ?? problem.title}`);
    this.problem = problem;
  }
}

/** Returns the data of an answer, or throws {@link Refused}. */
export function must<T>(answer: { data?: T; error?: Problem }): T {
  if (answer.error !== undefined) throw new Refused(answer.error);
  return answer.data as T;
}

/** Says how to follow a session. */
export interface Following {
  /** The sequence number of the last event that the client has. */
  after?: number;
  /** Ends the following. */
  signal?: AbortSignal;
  /** Makes the requests; default: the global fetch. */
  fetch?: typeof fetch;
}

/**
 * Yields the events of a session until its last one. If the connection breaks, it connects again and goes on after the last event that it has
 * yielded: nothing is missing, and nothing comes twice.
 */
export async function* follow(url: string, key: string, session: string, o: Following = {}): AsyncGenerator<Event> {
  let last = o.after ?? 0;
  let wait = 2000;
  const request = o.fetch ?? fetch;
  for (;;) {
    try {
      const answer = await request(`${url}/v1/sessions/${encodeURIComponent(session)}/events`, {
        headers: { Authorization: `Bearer ${key}`, Accept: "text/event-stream", ...(last > 0 ? { "Last-Event-ID": String(last) } : {}) },
        ...(o.signal ? { signal: o.signal } : {}),
      });
      if (answer.status === 204) return;
      if (answer.status !== 200 || answer.body === null) {
        const problem = (await answer.json()) as Problem;
        if (answer.status !== 429 && answer.status < 500) throw new Refused(problem);
        wait = 1000 * Number(answer.headers.get("Retry-After") ?? 2);
      } else {
        for await (const message of messages(answer.body)) {
          if (message.retry !== undefined) wait = message.retry;
          if (message.id === undefined || message.data === undefined || Number(message.id) <= last) continue;
          last = Number(message.id);
          yield JSON.parse(message.data) as Event;
        }
      }
    } catch (error) {
      if (o.signal?.aborted || error instanceof Refused) throw error;
    }
    await new Promise((resume) => setTimeout(resume, wait));
    o.signal?.throwIfAborted();
  }
}

interface Message {
  id?: string;
  data?: string;
  retry?: number;
}

/** Yields the messages of a stream of server-sent events. */
async function* messages(body: ReadableStream<Uint8Array>): AsyncGenerator<Message> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      yield parse(text.slice(0, end));
      text = text.slice(end + 2);
    }
  }
}

function parse(block: string): Message {
  const message: Message = {};
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(colon, 0));
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (name === "id") message.id = value;
    if (name === "data") message.data = message.data === undefined ? value : `${message.data}\n${value}`;
    if (name === "retry") message.retry = Number(value);
  }
  return message;
}
