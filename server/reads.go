package server

import (
	"context"
	"log/slog"

	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
)

// reads answers requests that read, by name, with the functions with which workers answer them. It neither writes nor asks Temporal.
type reads map[string]func(ctx context.Context, request, answer any) error

func newReads(db *store.DB, logger *slog.Logger) reads {
	a := activities.New(activities.Deps{Store: db, Logger: logger})
	answers := reads{}
	for _, answer := range activities.StoreAnswers(a) {
		answers[answer.Name] = answer.Here
	}
	return answers
}

// Read implements [client.Reader].
func (r reads) Read(ctx context.Context, name string, request, answer any) (bool, error) {
	read, ok := r[name]
	if pending, lists := request.(protocol.PendingRequest); !ok || lists && pending.Filter.For != "" { // workers know the groups of people
		return false, nil
	}
	return true, read(ctx, request, answer)
}
