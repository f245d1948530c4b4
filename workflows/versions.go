package workflows

// Names of changes to the commands of the workflows, for workflow.GetVersion. Runs that began before a change replay without it; the
// histories in testdata prove that. The numbers only grow.
const (
	// changeEndShown (1): a single call that is cancelled, or fails, shows its final status in its search attributes and details before
	// it closes. Before the change, a call that was cancelled while it waited stayed among those that wait for a person. The history
	// call-cancel-unshown is from before.
	changeEndShown = "2-call-end-shown"
)
