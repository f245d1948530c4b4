package activities

import (
	"context"
	"encoding/json"
	"reflect"

	"go.temporal.io/sdk/activity"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// nothing turns a function without an answer into one for [protocol.Read.AnsweredBy].
func nothing[Q any](do func(context.Context, Q) error) func(context.Context, Q) (protocol.Nothing, error) {
	return func(ctx context.Context, request Q) (protocol.Nothing, error) {
		return protocol.Nothing{}, do(ctx, request)
	}
}

// Answers lists what answers the requests that clients send directly. Package protocol names them.
func Answers(a *Activities) []protocol.Answer {
	return append(StoreAnswers(a),
		protocol.ReadApprovals.AnsweredBy(a.ListApprovals),
		protocol.ReadCatalog.AnsweredBy(a.ListCatalog),
		protocol.WriteArtifact.AnsweredBy(nothing(a.Upload)),
		protocol.ReadGrants.AnsweredBy(a.ListGrants),
		protocol.ReadInstallation.AnsweredBy(a.Installation),
		protocol.ReadPauses.AnsweredBy(a.ListPauses),
		protocol.ReadAudit.AnsweredBy(a.ReadAudit),
		protocol.ReadCall.AnsweredBy(a.Show), // it reads the audit, which the server's role may not
		protocol.ReadDecisions.AnsweredBy(a.ListDecisions),
		protocol.ReadEntity.AnsweredBy(a.Entity),
		protocol.ReadBacktest.AnsweredBy(a.Backtest),
		protocol.ReadPolicies.AnsweredBy(a.ListPolicies),
		protocol.ReadUsage.AnsweredBy(a.Usage),
		protocol.ReadReview.AnsweredBy(a.Review),
		protocol.ReadComparison.AnsweredBy(a.Compare),
		protocol.ReadRuled.AnsweredBy(a.Ruled),
		protocol.ReadFits.AnsweredBy(a.GrantFits),
		protocol.ReadVerdict.AnsweredBy(a.Verdict),
		protocol.ReadCases.AnsweredBy(a.PolicyCases),
		protocol.ReadWithTool.AnsweredBy(a.ReadWithTool),
		protocol.CheckStart.AnsweredBy(nothing(a.CheckStart)),
		protocol.WritePause.AnsweredBy(a.Pause),
		protocol.WriteOperate.AnsweredBy(a.OperateSchedule),
		protocol.WriteResume.AnsweredBy(a.Resume),
	)
}

// StoreAnswers lists what answers requests from the store alone. The server answers them itself.
func StoreAnswers(a *Activities) []protocol.Answer {
	return append(a.Store.Reads(),
		protocol.ReadStatus.AnsweredBy(a.Status),
		protocol.ReadEvents.AnsweredBy(a.ListEvents),
		protocol.ReadSessions.AnsweredBy(a.ListSessions),
		protocol.ReadTranscript.AnsweredBy(a.Transcript),
		protocol.ReadRecord.AnsweredBy(a.Record),
		protocol.ReadDocuments.AnsweredBy(a.ListDocuments),
		protocol.ReadArtifact.AnsweredBy(a.FetchArtifact),
		protocol.ReadPending.AnsweredBy(a.ListPending),
	)
}

// Answering returns the activity with which a worker answers a request of a client. Beside the request it takes a server's statement about who asks,
// which a tenant can demand. JSON that internal/strictjson refuses is an error of the activity, because Temporal would run an activity again whose
// request it cannot decode.
func Answering(a *Activities, answer protocol.Answer) func(ctx context.Context, request json.RawMessage, proof string) (any, error) {
	return func(ctx context.Context, request json.RawMessage, proof string) (any, error) {
		found, err := answer.Encoded(ctx, request, func(ctx context.Context, request any) (context.Context, error) {
			return a.asking(ctx, answer.Name, request, proof)
		})
		return found, temporalError(err)
	}
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
