package protocol

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/strictjson"
)

// TaskQueue is the default task queue of jig's workers.
const TaskQueue = "jig"

// These names are used by other programs and never change.
const (
	// PassWorkflow is the workflow type of an agent session. CallWorkflow is that of a single call.
	PassWorkflow = "Pass"
	CallWorkflow = "Call"
	// CompositionWorkflow is the type of the workflow that answers a call of an execution spec.
	CompositionWorkflow = "Composition"
	// ExtractionWorkflow is the type of the workflow that answers a call which fills an entity.
	ExtractionWorkflow = "Extraction"

	SignalApprove   = "approve"
	SignalDeny      = "deny"
	SignalMessage   = "message"
	SignalReconcile = "reconcile"
	SignalEvent     = "event"
	SignalDelegate  = "delegate"
	SignalAnswer    = "answer"

	UpdateDecide    = "decide"
	UpdateReconcile = "reconcile"
	UpdateAnswer    = "answer"
	// UpdateWait, an update of a Call workflow, answers as soon as the call has its result or waits for a person.
	UpdateWait = "wait"
	// TypeUpdateCutOff is the type of the failure of an update whose run ended before the update did. Clients send such an update again.
	TypeUpdateCutOff = "AcceptedUpdateCompletedWorkflow"

	QueryStatus = "status"
)

// SignalSettled tells a workflow that a call which it considers unknown was settled late. Only activities send it. Its payload is a
// [Settlement].
const SignalSettled = "jig.settled"

// Search attributes that every session carries.
const (
	AttrTenant  = "JigTenant"
	AttrAgent   = "JigAgent"
	AttrStatus  = "JigStatus"
	AttrTool    = "JigTool"
	AttrPass    = "JigPass"
	AttrPending = "JigPending"
)

// Read is the name of an activity that clients start directly, mostly to read, with the types of its request and its answer. Every request has a
// member Tenant.
type Read[Request, Answer any] string

// Answer is a read with the function that answers it; see [Read.AnsweredBy].
type Answer struct {
	// Name is the name of the read.
	Name string
	// Here answers in the process of the caller: response points at an answer of the read's type.
	Here func(ctx context.Context, request, response any) error
	// Encoded answers a request in JSON. It first calls begin with the decoded request, and then answers in the context that begin returns.
	Encoded func(ctx context.Context, text []byte, begin func(ctx context.Context, request any) (context.Context, error)) (any, error)
}

// AnsweredBy returns the read with the function that answers it.
func (r Read[Request, Response]) AnsweredBy(do func(context.Context, Request) (Response, error)) Answer {
	return Answer{
		Name: string(r),
		Here: func(ctx context.Context, request, response any) error {
			in, ok := request.(Request)
			out, fits := response.(*Response)
			if !ok || !fits {
				return jig.Errorf(jig.CodeInternal, "a request of type %T cannot be answered", request)
			}
			found, err := do(ctx, in)
			if err == nil {
				*out = found
			}
			return err
		},
		Encoded: func(ctx context.Context, text []byte, begin func(context.Context, any) (context.Context, error)) (any, error) {
			var in Request
			wrong := strictjson.Unmarshal(text, &in)
			ctx, err := begin(ctx, in)
			if wrong != nil {
				return nil, wrong
			}
			if err != nil {
				return nil, err
			}
			return do(ctx, in)
		},
	}
}

// Nothing is the answer of an activity that only checks or changes something.
type Nothing struct{}

// These activities are started directly by clients.
const (
	ReadStatus    Read[StatusRequest, jig.SessionView]  = "jig.status"
	ReadApprovals Read[ApprovalsRequest, ApprovalList]  = "jig.approvals"
	ReadEvents    Read[EventsRequest, EventsPage]       = "jig.events"
	ReadCatalog   Read[CatalogRequest, CatalogPage]     = "jig.catalog"
	ReadArtifact  Read[ArtifactRequest, ArtifactChunk]  = "jig.artifact"
	ReadEntity    Read[EntityRequest, jig.EntityStatus] = "jig.entity"
	WriteArtifact Read[UploadRequest, Nothing]          = "jig.upload"
	ReadGrants    Read[GrantsRequest, GrantsPage]       = "jig.grants"
	ReadPauses    Read[PausesRequest, PauseList]        = "jig.pauses"
	ReadAudit     Read[AuditRequest, AuditPage]         = "jig.audit"
	WritePause    Read[PauseRequest, PauseResult]       = "jig.pause"
	WriteResume   Read[PauseRequest, PauseResult]       = "jig.resume"
	// ReadInstallation reads the id of the installation.
	ReadInstallation Read[InstallationRequest, string] = "jig.installation"
	// WriteOperate records that somebody operates a schedule, and says whether they may.
	WriteOperate Read[OperateRequest, OperateAnswer] = "jig.operate"
)

// Activity types that clients start directly, to review approvals and recorded calls.
const (
	ReadPending    Read[PendingRequest, ApprovalList]     = "jig.pending"
	ReadDecisions  Read[DecisionsRequest, ApprovalList]   = "jig.decisions"
	ReadCall       Read[ShowRequest, ShowPage]            = "jig.call"
	ReadStatistics Read[StatisticsRequest, ApprovalStats] = "jig.statistics"
	ReadBacktest   Read[BacktestRequest, BacktestPage]    = "jig.backtest"
	ReadPolicies   Read[PoliciesRequest, PoliciesPage]    = "jig.policies"
	ReadUsage      Read[UsageRequest, Usage]              = "jig.usage"
	ReadReview     Read[ReviewRequest, ReviewList]        = "jig.review"
	// ReadComparison compares a call that waits for approval with what people are shown.
	ReadComparison Read[CompareRequest, Comparison] = "jig.comparison"
	ReadFits       Read[FitsRequest, FitsPage]      = "jig.fits"
	// ReadVerdict rules on a call that nobody makes, and ReadCases runs the cases of a policy document.
	ReadVerdict Read[VerdictRequest, Verdict] = "jig.verdict"
	ReadCases   Read[CasesRequest, CasesPage] = "jig.cases"
	// ReadRuled reads what became of the decisions of an update.
	ReadRuled Read[RuledRequest, DecideResult] = "jig.ruled"
	// ReadDocuments lists registered documents and their versions.
	ReadDocuments Read[DocumentsRequest, DocumentsPage] = "jig.documents"
	// ReadWithTool reads with one of the built-in tools that read entities, for a principal and without a session.
	ReadWithTool Read[ToolReadRequest, ToolReading] = "jig.read"
)

// Sweep is the activity type that closes sessions whose workflow was ended externally. Workers start it once a minute, without a workflow, so
// that lists of workflows show sessions alone.
const Sweep = "jig.sweep"

// Activity types that clients start directly, to check a start before anything is started and to read what became of one.
const (
	CheckStart     Read[CheckRequest, Nothing]         = "jig.check"
	ReadRecord     Read[RecordRequest, RecordPage]     = "jig.record"
	ReadSessions   Read[SessionsRequest, SessionList]  = "jig.sessions"
	ReadTranscript Read[TranscriptRequest, Transcript] = "jig.transcript"
)
