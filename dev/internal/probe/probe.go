// Package probe contains the tools that the end-to-end tests run: slow and failing tools, tools with large results, and tools whose effect is
// an HTTP request to a receiver outside the worker, which counts the effects. It depends only on the tool contract.
package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
)

// Tools returns the probes. The revision changes the contract of test.revised.
func Tools(revision string) []tools.Tool {
	list := []tools.Tool{
		tools.New(read("test.echo", "Returns its input. Only for tests."), echo),
		tools.New(local("test.quick", "Returns its input in a local activity. Only for tests."), echo),
		tools.New(read("test.sleep", "Waits. Only for tests."), sleep),
		tools.New(read("test.big", "Returns a large value. Only for tests."), big),
		tools.New(read("test.whoami", "Returns the tenant and the principal of the call. Only for tests."), whoami),
		tools.New(read("test.fail", "Fails. Only for tests."), fail),
		tools.New(read("test.twice", "Fails at its first attempt. Only for tests."), twice),
		tools.New(read("test.panic", "Panics. Only for tests."), explode),
		tools.New(needs(read("test.guarded", "Needs a permission. Only for tests."), "secrets.read"), echo),
		tools.New(hidden(read("test.hidden", "Belongs to another tenant. Only for tests.")), echo),
		tools.New(keyed(draft("test.serial", "Records when it runs; calls with the same key run one after another. Only for tests.", true)), effect),
	}
	return slices.Concat(list, effects(), cutTools(), doubtTools(), taskTools(), bundledTools(), revisedTools(revision))
}

func effects() []tools.Tool {
	write := draft("test.write", "Changes something outside. Only for tests.", true)
	write.Permission = jig.PermissionWrite
	risky := draft("test.once", "Changes something outside, once. Only for tests.", false)
	risky.Permission = jig.PermissionWrite
	return []tools.Tool{
		tools.New(draft("test.effect", "Changes something outside and must not run twice. Only for tests.", false), effect),
		tools.New(draft("test.keyed", "Changes something outside under a key. Only for tests.", true), effect),
		tools.New(write, effect),
		tools.New(risky, effect),
	}
}

func read(name, description string) jig.Tool {
	return jig.Tool{Name: name, Description: description, Permission: jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true, Labels: &jig.Labels{}}
}

func local(name, description string) jig.Tool {
	t := read(name, description)
	t.Execution = jig.ExecutionLocal
	return t
}

func draft(name, description string, idempotent bool) jig.Tool {
	return jig.Tool{Name: name, Description: description, Permission: jig.PermissionDraft, Risk: jig.RiskModerate, Idempotent: idempotent, MaxAttempts: 1000, Labels: &jig.Labels{}}
}

func needs(t jig.Tool, permission string) jig.Tool { t.RequiredPermission = permission; return t }

func hidden(t jig.Tool) jig.Tool { t.Tenants = []string{"somebody_else"}; return t }

func keyed(t jig.Tool) jig.Tool { t.ConcurrencyKey = "input.key"; return t }

type echoIn struct {
	Value string `json:"value" jsonschema:"value to return"`
	Count int    `json:"count,omitempty" jsonschema:"a number"`
}

type echoOut struct {
	Value string `json:"value"`
}

func (o echoOut) Summary() string { return "echoed " + o.Value }

func echo(_ context.Context, _ jig.Invocation, in echoIn) (echoOut, error) {
	return echoOut{Value: in.Value}, nil
}

type sleepIn struct {
	MS   int    `json:"ms" jsonschema:"milliseconds"`
	Name string `json:"name" jsonschema:"tells calls apart"`
}

type nothing struct{}

func sleep(ctx context.Context, _ jig.Invocation, in sleepIn) (nothing, error) {
	select {
	case <-time.After(time.Duration(in.MS) * time.Millisecond):
		return nothing{}, nil
	case <-ctx.Done():
		return nothing{}, fmt.Errorf("waiting: %w", ctx.Err())
	}
}

type bigIn struct {
	Bytes int    `json:"bytes" jsonschema:"size of the value"`
	Name  string `json:"name" jsonschema:"tells calls apart"`
}

type bigOut struct {
	Text string `json:"text"`
}

func big(_ context.Context, _ jig.Invocation, in bigIn) (bigOut, error) {
	line := "0123456789 the needle is " + in.Name + "\n"
	return bigOut{Text: strings.Repeat(line, in.Bytes/len(line)+1)[:in.Bytes]}, nil
}

type whoOut struct {
	Tenant    string `json:"tenant"`
	Principal string `json:"principal"`
}

type whoIn struct {
	TenantID string `json:"tenant_id,omitempty" jsonschema:"ignored; the session determines the tenant"`
}

func whoami(_ context.Context, inv jig.Invocation, _ whoIn) (whoOut, error) {
	return whoOut{Tenant: inv.Tenant, Principal: inv.Principal.ID}, nil
}

type nameIn struct {
	Name string `json:"name" jsonschema:"tells calls apart"`
}

func fail(context.Context, jig.Invocation, nameIn) (nothing, error) {
	return nothing{}, jig.Errorf(jig.CodeConflict, "it does not work").WithHint("do not try").WithReason("broken")
}

// twice needs a second attempt.
func twice(_ context.Context, inv jig.Invocation, _ nameIn) (nothing, error) {
	if inv.Attempt == 1 {
		return nothing{}, jig.Errorf(jig.CodeUnavailable, "not yet")
	}
	return nothing{}, nil
}

func explode(context.Context, jig.Invocation, nameIn) (nothing, error) {
	panic("a bug in a tool")
}

type effectIn struct {
	URL    string `json:"url" jsonschema:"the receiver"`
	Name   string `json:"name" jsonschema:"tells calls apart"`
	Key    string `json:"key,omitempty" jsonschema:"concurrency key"`
	Before int    `json:"before,omitempty" jsonschema:"milliseconds to wait before the effect"`
	After  int    `json:"after,omitempty" jsonschema:"milliseconds to wait after the effect"`
}

type effectOut struct {
	Status int `json:"status"`
}

// effect posts its name under the call's idempotency key. It waits before and after the request, so that a test can kill the worker there.
func effect(ctx context.Context, inv jig.Invocation, in effectIn) (effectOut, error) {
	if _, err := sleep(ctx, inv, sleepIn{MS: in.Before}); err != nil {
		return effectOut{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, in.URL, bytes.NewReader([]byte(in.Name)))
	if err != nil {
		return effectOut{}, jig.Errorf(jig.CodeInvalidInput, "the receiver: %w", err)
	}
	request.Header.Set("Idempotency-Key", inv.IdempotencyKey)
	request.Header.Set("Jig-Call", inv.CallID)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return effectOut{}, jig.Errorf(jig.CodeUnavailable, "the receiver: %w", err)
	}
	_, copied := io.Copy(io.Discard, response.Body)
	if err := errors.Join(copied, response.Body.Close()); err != nil {
		return effectOut{}, jig.Errorf(jig.CodeUnavailable, "the receiver: %w", err)
	}
	if _, err := sleep(ctx, inv, sleepIn{MS: in.After}); err != nil {
		return effectOut{}, err
	}
	return effectOut{Status: response.StatusCode}, nil
}
