package ledger

// Ending describes how a workflow ended, according to Temporal.
type Ending struct {
	How EndedHow
	// Reason is the reason that was given with the request. Identity is how the sender of the request called itself. Nobody checks either.
	Reason, Identity string
}

// EndedHow says how a workflow was ended.
type EndedHow int

// The ways in which a workflow is ended.
const (
	// EndedSomehow means that Temporal does not say.
	EndedSomehow EndedHow = iota
	// EndedItself means that nobody but the workflow itself or its parent ended it.
	EndedItself
	EndedCanceled
	EndedTerminated
	EndedTimedOut
	// EndedGone means that Temporal does not know the workflow.
	EndedGone
)
