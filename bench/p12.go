package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
)

// entrance is a way to ask jig: its HTTP API or its Go client.
type entrance interface {
	start(ctx context.Context, id, document string, input json.RawMessage) error
	decide(ctx context.Context, session string, asked jig.Pending) (jig.Ruled, error)
	// list returns the number of sessions on the first page.
	list(ctx context.Context) (int, error)
}

// requested are the kinds of requests of P12, in the order of the values of [bench.ask].
func requested() []string { return []string{"start", "decide", "list"} }

// listedPage is the length of a page of sessions.
const listedPage = 40

// goEntrance asks with the Go client.
type goEntrance struct {
	client *client.Client
	tenant string
}

func (g goEntrance) start(ctx context.Context, id, document string, input json.RawMessage) error {
	_, err := g.client.Start(ctx, client.StartOptions{
		Tenant: g.tenant, ID: id, Document: document, DocumentName: "agent.md", Input: input, Principal: jig.Principal{ID: "bench"}, Check: true,
	})
	return err
}

func (g goEntrance) decide(ctx context.Context, session string, asked jig.Pending) (jig.Ruled, error) {
	result, err := g.client.Decide(ctx, g.tenant, session, []jig.Decision{{Call: asked.Call, By: "bench", Answer: jig.AnswerApprove, Digest: asked.Digest}})
	if err != nil {
		return jig.Ruled{}, err
	}
	return result.Decisions[0], nil
}

func (g goEntrance) list(ctx context.Context) (int, error) {
	page, err := g.client.Sessions(ctx, g.tenant, protocol.SessionFilter{}, "", listedPage)
	return len(page.Sessions), err
}

// httpEntrance asks a server over HTTP.
type httpEntrance struct{ url, key string }

func (h httpEntrance) do(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write the request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, h.url+path, bytes.NewReader(text)) //nolint:gosec // the address of a server that this program started
	if err != nil {
		return fmt.Errorf("make the request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+h.key)
	answer, err := http.DefaultClient.Do(request) //nolint:gosec // as above
	if err != nil {
		return fmt.Errorf("send the request: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("status %d: %s", answer.StatusCode, content)
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

func (h httpEntrance) start(ctx context.Context, id, document string, input json.RawMessage) error {
	var started struct {
		SessionID string `json:"session_id"`
	}
	return h.do(ctx, http.MethodPost, "/v1/sessions", map[string]any{"id": id, "document": document, "input": input}, &started)
}

func (h httpEntrance) decide(ctx context.Context, session string, asked jig.Pending) (ruled jig.Ruled, err error) {
	body := map[string]any{"call": asked.Call, "answer": jig.AnswerApprove, "digest": asked.Digest}
	return ruled, h.do(ctx, http.MethodPost, "/v1/approvals/"+session+"/decision", body, &ruled)
}

func (h httpEntrance) list(ctx context.Context) (int, error) {
	var page struct{ Sessions []protocol.SessionItem }
	err := h.do(ctx, http.MethodGet, fmt.Sprintf("/v1/sessions?limit=%d", listedPage), nil, &page)
	return len(page.Sessions), err
}

// overHTTP measures P12: requests over HTTP beside the same requests with the Go client.
func overHTTP(ctx context.Context, b *bench) ([]row, error) {
	c := b.caller().at(taskQueue, newTenant("http"))
	// Like the server, this client has a connection that no worker shares. Otherwise Temporal would hand that worker the first task of each session at once.
	apart, err := dial(ctx, b.environment)
	if err != nil {
		return nil, err
	}
	defer apart.Close()
	list, key, err := b.apiServers(ctx, c.tenant, 1)
	if err != nil {
		return nil, err
	}
	defer list.kill()
	entrances := map[string]entrance{"HTTP": httpEntrance{url: list[0].url, key: key}, "Go client": goEntrance{client.New(apart, client.Options{TaskQueue: taskQueue}), c.tenant}}
	sides := []side{{name: "HTTP"}, {name: "Go client"}}
	for _, s := range sides { // warm up
		if _, err := b.ask(ctx, c, entrances[s.name], 2); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	medians := map[string][][]float64{}
	_, err = b.alternate(ctx, "p12", sides, func(ctx context.Context, s side) (float64, error) {
		times, err := b.ask(ctx, c, entrances[s.name], b.size.requests)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", s.name, err)
		}
		if medians[s.name] == nil {
			medians[s.name] = make([][]float64, len(times))
		}
		for i, list := range times {
			medians[s.name][i] = append(medians[s.name][i], quantile(list, 0.5))
		}
		return quantile(times[0], 0.5), nil
	})
	if err != nil {
		return nil, err
	}
	rows := make([]row, len(requested()))
	for i, what := range requested() {
		over, own := medians["HTTP"][i], medians["Go client"][i]
		more := differences(over, own)
		rows[i] = row{
			figure: what + ": request → answer, p50: HTTP API beside the Go client", target: "≤ 3 ms more", jig: spreadOf(over).show(1, " ms"),
			baseline: spreadOf(own).show(1, " ms"), ratio: more.show(1, " ms") + " more", verdict: judge(more.median <= 3),
		}
	}
	return rows, nil
}

// ask makes n requests of each kind, one at a time, and returns how long they took, by kind: a session is started, and when it waits, the
// tenant's sessions are listed and its call is decided.
func (b *bench) ask(ctx context.Context, c caller, e entrance, n int) ([][]float64, error) {
	document, err := c.agent.document()
	if err != nil {
		return nil, err
	}
	input, err := planInput(askingPlan())
	if err != nil {
		return nil, err
	}
	times := make([][]float64, len(requested()))
	timed := func(kind int, do func() error) error {
		began := time.Now()
		if err := do(); err != nil {
			return fmt.Errorf("%s: %w", requested()[kind], err)
		}
		times[kind] = append(times[kind], milliseconds(time.Since(began)))
		return nil
	}
	for range n {
		id := newID(c.tenant)
		if err := timed(0, func() error { return e.start(ctx, id, document, input) }); err != nil {
			return nil, err
		}
		if err := b.untilSuspended(ctx, id); err != nil {
			return nil, err
		}
		waiting, err := b.jig.Pending(ctx, c.tenant, jig.PendingFilter{SessionID: id}, "", 1)
		if err != nil {
			return nil, fmt.Errorf("what waits in %s: %w", id, err)
		}
		if len(waiting.Approvals) != 1 {
			return nil, fmt.Errorf("%d calls wait in %s", len(waiting.Approvals), id)
		}
		err = timed(2, func() error {
			found, err := e.list(ctx)
			if err == nil && found == 0 {
				err = errors.New("the page is empty")
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		err = timed(1, func() error {
			ruled, err := e.decide(ctx, id, waiting.Approvals[0])
			if err == nil && ruled.Outcome != jig.DecisionAccepted {
				err = fmt.Errorf("it was refused: %s", ruled.Reason)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if err := b.temporal.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
			return nil, fmt.Errorf("session %s: %w", id, err)
		}
	}
	return times, nil
}
