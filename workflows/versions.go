package workflows

// Names of changes to the commands of the workflows, for workflow.GetVersion. Runs that began before a change replay without it; the
// histories in testdata prove that. The numbers only grow.
const (
	// changeEndShown (1): a single call that is cancelled, or fails, shows its final status in its search attributes and details before
	// it closes. Before the change, a call that was cancelled while it waited stayed among those that wait for a person. The history
	// call-cancel-unshown is from before.
	changeEndShown = "2-call-end-shown"
	// changeRest (1): a call that comes back from an attempt open and no further than before rests before it starts again, and fails the
	// session in the end. Before the change it started again at once.
	changeRest = "3-rest-idle-calls"
	// changeTellParent (1): a session that answers a call of another one tells that one what it waits for. Before the change, the other
	// one was shown as working meanwhile. The histories agents-untold are from before. Since the change, word of what a composition or
	// such a session waits for is dropped when later word was heard first.
	changeTellParent = "4-tell-parent"
)
