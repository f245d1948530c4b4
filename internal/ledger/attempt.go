package ledger

import (
	"time"

	"github.com/jig-run/jig"
)

// Reserve asks the ledger to begin an attempt.
type Reserve struct {
	Tenant    string
	SessionID string
	CallID    string
	// Version is the version of the tool that this worker would run.
	Version string
	// Meaning is the [jig.Tool.Meaning] of that version. A grant used in place of an approval must have been given for the same meaning.
	Meaning string
	// Digest is the digest of the call that the worker is about to run, computed by the worker. It must equal the digest in the ledger and the
	// approved one.
	Digest string
	// MaxAttempts bounds the attempts of the call.
	MaxAttempts int
	// Attempt identifies the attempt, so that a worker that did not receive the answer can ask again and get the same fence; empty if it never
	// asks twice.
	Attempt string
	// ProofWanted reports that decisions must be proved. An approval that was merely claimed is withdrawn, and a new one is requested.
	ProofWanted bool
	// Child is the session that answers the call; empty for a call that runs as an activity or a composition.
	Child string
}

// ReserveOutcome is the ledger's answer to [Reserve].
type ReserveOutcome string

// The answers to Reserve.
const (
	// ReserveRun: the attempt may begin under the returned fence.
	ReserveRun ReserveOutcome = "run"
	// ReserveFinal: the call already has its result.
	ReserveFinal ReserveOutcome = "final"
	// ReserveUnknown: an earlier attempt began and nobody knows how it ended; a person must decide.
	ReserveUnknown ReserveOutcome = "unknown"
	// ReserveWaiting: there is no valid approval; the call waits for one.
	ReserveWaiting ReserveOutcome = "waiting"
)

// Reservation is the ledger's answer to [Reserve], with details.
type Reservation struct {
	Outcome ReserveOutcome
	Call    jig.Call
	// Fence must be passed back with the [Completion].
	Fence int
	// InDoubt reports that an earlier attempt of a writing call began and may have taken effect.
	InDoubt bool
}

// Completion finalizes an attempt.
type Completion struct {
	Tenant    string
	SessionID string
	CallID    string
	Fence     int
	// Digest is the digest of the call that ran.
	Digest string
	// Status is succeeded, failed or canceled; unknown when nobody can know whether the effect happened; or reserved to return the call to
	// the ledger for another attempt.
	Status jig.CallStatus
	// InDoubt reports, for a call returned as reserved, that its effect may have happened.
	InDoubt bool
	Result  jig.ToolResult
	// Whole is the full result (JSON of a [jig.ToolResult]) when Result was shortened; it is stored as ResultArtifact.
	Whole []byte
}

// Completed is a call after a [Completion].
type Completed struct {
	jig.Call
	// Late reports that the call was unknown and this completion settled it. The workflow that waits for the call has not been notified yet.
	Late bool
}

// QuickCompletion records a first attempt at a read-only, idempotent call that has already run.
type QuickCompletion struct {
	CallID string
	// Version and Digest describe the call that ran; they must match the admitted call.
	Version, Digest string
	// Status is succeeded or failed.
	Status            jig.CallStatus
	Result            jig.ToolResult
	Started, Finished time.Time
}

// MayRetry reports whether jig may repeat a call that failed with err without asking a person. A writing call may be repeated if nothing
// happened (NotExecuted) or if the tool is idempotent; the repetition uses the same idempotency key and input. Other calls may always be
// repeated. Whether a repetition is useful is a separate question: see [jig.Code.Retryable].
func MayRetry(writes, idempotent bool, err *jig.Error) bool {
	return !writes || idempotent || err != nil && err.NotExecuted
}
