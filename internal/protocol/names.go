package protocol

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

// These activity types are started directly by clients, mostly to read. Each takes one of the request types below.
const (
	ReadStatus    = "jig.status"
	ReadApprovals = "jig.approvals"
	ReadEvents    = "jig.events"
	ReadCatalog   = "jig.catalog"
	ReadArtifact  = "jig.artifact"
	ReadEntity    = "jig.entity"
	WriteArtifact = "jig.upload"
	ReadGrants    = "jig.grants"
	ReadPauses    = "jig.pauses"
	ReadAudit     = "jig.audit"
	WritePause    = "jig.pause"
	WriteResume   = "jig.resume"
	// ReadInstallation reads the id of the installation.
	ReadInstallation = "jig.installation"
	// WriteOperate records that somebody operates a schedule, and says whether they may.
	WriteOperate = "jig.operate"
)

// Activity types that clients start directly, to review approvals and recorded calls.
const (
	ReadPending    = "jig.pending"
	ReadCall       = "jig.call"
	ReadStatistics = "jig.statistics"
	ReadBacktest   = "jig.backtest"
	ReadPolicies   = "jig.policies"
	ReadUsage      = "jig.usage"
	ReadReview     = "jig.review"
	// ReadComparison compares a call that waits for approval with what people are shown.
	ReadComparison = "jig.comparison"
	ReadFits       = "jig.fits"
	// ReadVerdict rules on a call that nobody makes, and ReadCases runs the cases of a policy document.
	ReadVerdict = "jig.verdict"
	ReadCases   = "jig.cases"
	// ReadRuled reads what became of the decisions of an update.
	ReadRuled = "jig.ruled"
	// ReadDocuments lists registered documents and their versions.
	ReadDocuments = "jig.documents"
	// ReadWithTool reads with one of the built-in tools that read entities, for a principal and without a session.
	ReadWithTool = "jig.read"
)

// Sweep is the activity type that closes sessions whose workflow was ended externally. Workers start it once a minute, without a workflow, so
// that lists of workflows show sessions alone.
const Sweep = "jig.sweep"

// Activity types that clients start directly, to check a start before anything is started and to read what became of one.
const (
	CheckStart     = "jig.check"
	ReadRecord     = "jig.record"
	ReadSessions   = "jig.sessions"
	ReadTranscript = "jig.transcript"
)
