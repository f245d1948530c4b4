package activities

import (
	"cmp"
	"context"
	"reflect"

	"go.temporal.io/sdk/activity"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/strictjson"
)

// Answering returns an activity that clients start directly, to read or to change something. Beside the request it takes a server's statement about
// who asks, which a tenant can demand. name is the activity's name.
func Answering[Q, A any](a *Activities, name string, do func(context.Context, Q) (A, error)) func(context.Context, Strict[Q], string) (A, error) {
	return func(ctx context.Context, request Strict[Q], proof string) (A, error) {
		ctx, err := a.asking(ctx, name, request.Value, proof)
		if err = cmp.Or(request.err, err); err != nil {
			return *new(A), temporalError(err)
		}
		return do(ctx, request.Value)
	}
}

// Strict is a request that a client sends to an activity. It refuses what internal/strictjson refuses, when the activity runs: an error of decoding
// would make Temporal run it again.
type Strict[Q any] struct {
	Value Q
	err   error
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *Strict[Q]) UnmarshalJSON(text []byte) error {
	s.err = strictjson.Unmarshal(text, &s.Value)
	return nil
}

// asking returns a context with the server's statement about a request. The error is NOT_PERMITTED if the tenant demands a statement and there
// is none that counts.
func (a *Activities) asking(ctx context.Context, name string, request any, proof string) (context.Context, error) {
	tenant := reflect.ValueOf(request).FieldByName("Tenant").String() // a test makes sure that every request has one
	if err := jig.CheckTenant(tenant); err != nil {
		return ctx, err
	}
	at := a.Now()
	if activity.IsActivity(ctx) {
		at = activity.GetInfo(ctx).ScheduledTime
	}
	want := protocol.Statement{Kind: protocol.StateRead, Tenant: tenant, Content: protocol.ContentOf(name, request)}
	st, err := a.stated(ctx, proof, want, at)
	if st == nil || err != nil {
		return ctx, err
	}
	return context.WithValue(ctx, statedKey{}, st), nil
}

type statedKey struct{}

// statedIn returns the server's statement about the request that an activity answers, or nil without one.
func statedIn(ctx context.Context) *protocol.Statement {
	if st, ok := ctx.Value(statedKey{}).(*protocol.Statement); ok {
		return st
	}
	return nil
}
