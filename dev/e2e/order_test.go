package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// orderedServer is an external system that records the requests in the order in which they arrive. It answers a request only when the test lets it.
type orderedServer struct {
	*httptest.Server
	mu      sync.Mutex
	arrived []string
	let     map[string]chan struct{}
}

// newOrderedServer returns a system that holds the requests with these names until they are released.
func newOrderedServer(t *testing.T, held ...string) *orderedServer {
	t.Helper()
	l := &orderedServer{let: map[string]chan struct{}{}}
	for _, name := range held {
		l.let[name] = make(chan struct{})
	}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return // a killed worker's incomplete request does not count
		}
		name := string(body)
		l.mu.Lock()
		l.arrived = append(l.arrived, name)
		l.mu.Unlock()
		if let := l.let[name]; let != nil {
			select {
			case <-let:
			case <-request.Context().Done():
				return
			}
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *orderedServer) order() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.arrived)
}

// comes waits until a request has arrived a number of times.
func (l *orderedServer) comes(t *testing.T, name string, times int) {
	t.Helper()
	require.True(t, eventually(t.Context(), patience, func() bool {
		return len(slices.DeleteFunc(l.order(), func(other string) bool { return other != name })) >= times
	}), "%s does not arrive: %v", name, l.order())
}

// keyedRules make calls of one pass: three with one key and one with another.
const keyedRules = `    - when: pass == 1
      calls:
        - {tool: test.serial, input: {url: "${input.url}", name: a1, key: a}}
        - {tool: test.serial, input: {url: "${input.url}", name: a2, key: a}}
        - {tool: test.serial, input: {url: "${input.url}", name: b1, key: b}}
        - {tool: test.serial, input: {url: "${input.url}", name: a3, key: a}}
    - answer: done
`

// Calls of one pass with the same key run one after another, in the order of the model's answer. Those with another key run beside them. A
// worker that replaces a killed one keeps the order.
func TestConcurrencyKeys_OrderCallsOfAPass(t *testing.T) { //nolint:paralleltest // it kills the worker of all its calls
	d, l := startEnv(t), newOrderedServer(t, "a1")
	id := d.run(agent("[test.serial]", keyedRules), map[string]any{"url": l.URL})
	l.comes(t, "a1", 1)
	l.comes(t, "b1", 1) // while a1 is still being answered
	d.kill()
	d.start()
	l.comes(t, "a1", 2)
	require.NotContains(t, l.order(), "a2")
	close(l.let["a1"])
	require.Equal(t, jig.StatusCompleted, d.finish(id).Status)
	require.Equal(t, []string{"a1", "a1", "a2", "a3"}, slices.DeleteFunc(l.order(), func(name string) bool { return name == "b1" }))
}

// orderedDocument is a composition with a key. Its steps write to another place, so only its own key orders its calls.
const orderedDocument = `kind: composition
name: page.publish
description: Publishes a page.
concurrency_key: "'page ' + input.page"
input_schema:
  type: object
  required: [url, page, name]
  properties: {url: {type: string}, page: {type: string}, name: {type: string}}
steps:
  - {id: sent, tool: test.keyed, input: {url: "${input.url}", name: "${input.name}"}}
output: {}
`

// A document sets the key of its calls.
func TestConcurrencyKeys_OfDocuments(t *testing.T) {
	t.Parallel()
	o, l := joinTenantEnv(t), newOrderedServer(t, "home1")
	o.install("publish.yaml", orderedDocument, o.trusting)
	rules := "    - when: pass == 1\n      calls:\n"
	for _, call := range [][2]string{{"home", "home1"}, {"home", "home2"}, {"news", "news1"}, {"home", "home3"}} {
		rules += fmt.Sprintf("        - {tool: page.publish, input: {url: %q, page: %s, name: %s}}\n", l.URL, call[0], call[1])
	}
	id := o.run(agent("[page.publish, test.keyed]", rules+"    - answer: done\n"), map[string]any{})
	l.comes(t, "home1", 1)
	l.comes(t, "news1", 1)
	require.NotContains(t, l.order(), "home2")
	close(l.let["home1"])
	require.Equal(t, jig.StatusCompleted, o.finish(id).Status)
	require.Equal(t, []string{"home1", "home2", "home3"}, slices.DeleteFunc(l.order(), func(name string) bool { return name == "news1" }))
}
