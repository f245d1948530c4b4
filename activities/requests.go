package activities

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Answer is what answers one of the requests that clients send directly, which package protocol names.
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
