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

// Answer answers one of the requests that clients send directly. Package protocol names them.
type Answer struct {
	Name string
	// Activity answers on a worker.
	Activity any
	// Here answers in the process of the caller: response points at an answer of the request's type.
	Here func(ctx context.Context, request, response any) error
}

// answer returns what answers a request with do.
func answer[Q, A any](a *Activities, name protocol.Read[Q, A], do func(context.Context, Q) (A, error)) Answer {
	return Answer{Name: string(name), Activity: Answering(a, string(name), do), Here: func(ctx context.Context, request, response any) error {
		q, ok := request.(Q)
		into, fits := response.(*A)
		if !ok || !fits {
			return jig.Errorf(jig.CodeInternal, "a request of type %T cannot be answered", request)
		}
		found, err := do(ctx, q)
		if err != nil {
			return ErrorFrom(err)
		}
		*into = found
		return nil
	}}
}

// nothing turns a function without an answer into one for [answer].
func nothing[Q any](do func(context.Context, Q) error) func(context.Context, Q) (protocol.Nothing, error) {
	return func(ctx context.Context, request Q) (protocol.Nothing, error) {
		return protocol.Nothing{}, do(ctx, request)
	}
}

// Answers lists what answers the requests of clients.
func Answers(a *Activities) []Answer {
	return append(StoreAnswers(a),
		answer(a, protocol.ReadApprovals, a.ListApprovals),
		answer(a, protocol.ReadCatalog, a.ListCatalog),
		answer(a, protocol.WriteArtifact, nothing(a.Upload)),
		answer(a, protocol.ReadGrants, a.ListGrants),
		answer(a, protocol.ReadInstallation, a.Installation),
		answer(a, protocol.ReadPauses, a.ListPauses),
		answer(a, protocol.ReadAudit, a.ReadAudit),
		answer(a, protocol.ReadStatistics, a.Statistics),
		answer(a, protocol.ReadEntity, a.Entity),
		answer(a, protocol.ReadBacktest, a.Backtest),
		answer(a, protocol.ReadPolicies, a.ListPolicies),
		answer(a, protocol.ReadUsage, a.Usage),
		answer(a, protocol.ReadReview, a.Review),
		answer(a, protocol.ReadComparison, a.Compare),
		answer(a, protocol.ReadRuled, a.Ruled),
		answer(a, protocol.ReadFits, a.GrantFits),
		answer(a, protocol.ReadVerdict, a.Verdict),
		answer(a, protocol.ReadCases, a.PolicyCases),
		answer(a, protocol.ReadWithTool, a.ReadWithTool),
		answer(a, protocol.CheckStart, nothing(a.CheckStart)),
		answer(a, protocol.WritePause, a.Pause),
		answer(a, protocol.WriteOperate, a.OperateSchedule),
		answer(a, protocol.WriteResume, a.Resume),
	)
}

// StoreAnswers lists what answers requests from the store alone. The server answers them itself.
func StoreAnswers(a *Activities) []Answer {
	return []Answer{
		answer(a, protocol.ReadStatus, a.Status),
		answer(a, protocol.ReadEvents, a.ListEvents),
		answer(a, protocol.ReadSessions, a.ListSessions),
		answer(a, protocol.ReadTranscript, a.Transcript),
		answer(a, protocol.ReadRecord, a.Record),
		answer(a, protocol.ReadDocuments, a.ListDocuments),
		answer(a, protocol.ReadArtifact, a.FetchArtifact),
		answer(a, protocol.ReadCall, a.Show),
		answer(a, protocol.ReadPending, a.ListPending),
	}
}

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
