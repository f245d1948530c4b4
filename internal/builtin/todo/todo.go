// Package todo contains the tool todo.write, which lets an agent keep a to-do list. It must not know how sessions are stored.
package todo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
)

// Store stores the to-do list of a session.
type Store interface {
	// SetTodo replaces the session's list; items is a JSON array of [Item].
	SetTodo(ctx context.Context, tenant, sessionID string, items json.RawMessage) error
}

// Options are the settings of the tools.
type Options struct {
	// Store stores the lists; required.
	Store Store
}

// Item is one entry of the list.
type Item struct {
	ID       string `json:"id"                 jsonschema:"short and the same over all calls, e.g. 1"            minLength:"1" maxLength:"64"`
	Task     string `json:"task"               jsonschema:"what is to be done, in one line"                       minLength:"1" maxLength:"1000"`
	Status   string `json:"status"             enum:"pending,in_progress,completed"`
	Priority string `json:"priority,omitempty" enum:"low,medium,high"`
}

// List is the whole list, both the input and the output of todo.write.
type List struct {
	Items []Item `json:"items" jsonschema:"the whole list, in the order it is to be done" maxItems:"200"`
}

// Summary implements tools.Summarizer.
func (l List) Summary() string {
	done := 0
	for _, item := range l.Items {
		if item.Status == "completed" {
			done++
		}
	}
	return fmt.Sprintf("%d of %d done", done, len(l.Items))
}

// Tools returns the tools of this package.
func Tools(options Options) []tools.Tool {
	return []tools.Tool{tools.New(jig.Tool{
		Name: "todo.write",
		Description: "Replaces the session's list of things to do. Use it to plan work of more than two steps and to mark steps as you begin and " +
			"finish them; not for a single step and not to talk to people. Give the whole list each time, ids unchanged. Returns the list as stored.",
		Permission: jig.PermissionDraft, Risk: jig.RiskSafe, Idempotent: true, Timeout: 10 * time.Second, Tags: []string{"planning"},
		ConcurrencyKey: `'todo'`,
		Labels:         &jig.Labels{},
	}, func(ctx context.Context, inv jig.Invocation, in List) (List, error) {
		return in, write(ctx, options.Store, inv, in)
	})}
}

func write(ctx context.Context, store Store, inv jig.Invocation, in List) error {
	at := map[string]int{}
	for i, item := range in.Items {
		if first, twice := at[item.ID]; twice {
			return jig.Errorf(jig.CodeInvalidInput, "items %d and %d have the same id %q", first, i, item.ID).
				WithField(fmt.Sprintf("/items/%d/id", i)).WithReason("duplicate_id").WithHint("give each item its own id")
		}
		at[item.ID] = i
	}
	items := in.Items
	if items == nil {
		items = []Item{}
	}
	b, err := json.Marshal(items)
	if err != nil {
		return fmt.Errorf("write items: %w", err)
	}
	if err := store.SetTodo(ctx, inv.Tenant, inv.SessionID, b); err != nil {
		return fmt.Errorf("store items: %w", err)
	}
	return nil
}
