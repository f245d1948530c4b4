import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { follow, jig, must, Refused } from "./client.js";

/** Runs use with the address of a server. */
async function serve(answer: RequestListener, use: (url: string) => Promise<void>): Promise<void> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await new Promise((resume) => server.once("listening", resume));
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    await new Promise((resume) => server.close(resume));
  }
}

const event = (seq: number) => `id: ${seq}\nevent: pass.started\ndata: {"session_id":"ses_1","seq":${seq},"type":"pass.started"}\n\n`;

test("a client sends its key and returns typed answers", async () => {
  await serve(
    (request, response) => {
      assert.equal(request.headers.authorization, "Bearer jig_key");
      response.setHeader("Content-Type", "application/json");
      if (request.url === "/v1/me") {
        response.end(JSON.stringify({ tenant: "acme", principal: "ana", proof: "claimed", credential: { kind: "api_key", id: "k", scopes: ["read"] } }));
        return;
      }
      assert.equal(request.url, "/v1/sessions/order-7/result?wait=5");
      response.statusCode = 404;
      response.setHeader("Content-Type", "application/problem+json");
      response.end(JSON.stringify({ type: "about:blank", title: "Not Found", status: 404, code: "NOT_FOUND", detail: "none", request_id: "req_1" }));
    },
    async (url) => {
      const client = jig(url, "jig_key");
      assert.equal(must(await client.GET("/v1/me")).tenant, "acme");
      const missing = await client.GET("/v1/sessions/{session}/result", { params: { path: { session: "order-7" }, query: { wait: 5 } } });
      assert.throws(
        () => must(missing),
        (error) => error instanceof Refused && error.problem.code === "NOT_FOUND",
      );
    },
  );
});

test("following goes on where the connection broke, and ends with the session", async () => {
  const asked: (string | undefined)[] = [];
  await serve(
    (request, response) => {
      asked.push(request.headers["last-event-id"] as string | undefined);
      if (asked.length === 4) {
        response.writeHead(204).end();
        return;
      }
      if (asked.length === 2) {
        response.writeHead(503, { "Retry-After": "0", "Content-Type": "application/problem+json" }).end("{}");
        return;
      }
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      if (asked.length === 1) {
        response.write("retry: 1\n\n" + event(1));
        response.write(event(2) + event(3).slice(0, 20)); // it breaks in the middle of an event
        setTimeout(() => response.destroy(), 50);
        return;
      }
      response.end("retry: 1\n\n: ping\n\n" + event(2) + event(3) + event(4));
    },
    async (url) => {
      const seen: number[] = [];
      for await (const one of follow(url, "jig_key", "ses_1")) seen.push(one.seq);
      assert.deepEqual(seen, [1, 2, 3, 4]);
      assert.deepEqual(asked, [undefined, "2", "2", "4"]);
    },
  );
});

test("following a session that does not exist fails", async () => {
  await serve(
    (_request, response) => response.writeHead(404, { "Content-Type": "application/problem+json" }).end(JSON.stringify({ code: "NOT_FOUND", title: "Not Found" })),
    async (url) => {
      await assert.rejects(async () => {
        for await (const _ of follow(url, "jig_key", "ses_1")) assert.fail();
      }, Refused);
    },
  );
});
