package server

import (
	"context"
	"log/slog"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
)

// reads answers requests that read, by name, with the functions with which workers answer them. It neither writes nor asks Temporal.
type reads map[string]func(ctx context.Context, request, answer any) (answered bool, err error)

func newReads(db *store.DB, logger *slog.Logger) reads {
	a := activities.New(activities.Deps{Store: db, Logger: logger})
	always := func(read func(ctx context.Context, request, answer any) error) func(ctx context.Context, request, answer any) (bool, error) {
		return func(ctx context.Context, request, answer any) (bool, error) { return true, read(ctx, request, answer) }
	}
	pending := answering(a.ListPending)
	return reads{
		protocol.ReadStatus:     always(answering(a.Status)),
		protocol.ReadEvents:     always(answering(a.ListEvents)),
		protocol.ReadSessions:   always(answering(a.ListSessions)),
		protocol.ReadTranscript: always(answering(a.Transcript)),
		protocol.ReadRecord:     always(answering(a.Record)),
		protocol.ReadDocuments:  always(answering(a.ListDocuments)),
		protocol.ReadArtifact:   always(answering(a.FetchArtifact)),
		protocol.ReadCall:       always(answering(a.Show)),
		protocol.ReadPending: func(ctx context.Context, request, answer any) (bool, error) {
			if r, ok := request.(protocol.PendingRequest); ok && r.Filter.For != "" { // workers know the groups of people
				return false, nil
			}
			return true, pending(ctx, request, answer)
		},
	}
}

// Read implements [client.Reader].
func (r reads) Read(ctx context.Context, name string, request, answer any) (bool, error) {
	read, ok := r[name]
	if !ok {
		return false, nil
	}
	return read(ctx, request, answer)
}

// answering turns a reading function of the engine into one for requests and answers of any type.
func answering[Q, A any](do func(context.Context, Q) (A, error)) func(ctx context.Context, request, answer any) error {
	return func(ctx context.Context, request, answer any) error {
		q, ok := request.(Q)
		into, fits := answer.(*A)
		if !ok || !fits {
			return jig.Errorf(jig.CodeInternal, "a request of type %T cannot be answered", request)
		}
		found, err := do(ctx, q)
		if err != nil {
			return activities.ErrorFrom(err)
		}
		*into = found
		return nil
	}
}
