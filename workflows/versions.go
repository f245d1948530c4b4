package workflows

import "go.temporal.io/sdk/workflow"

// Moves says how runs move between versions of workers: each moves to the current version with its next task, so an approval that waits for days
// does not pin an old worker. The constants below make that safe.
const Moves = workflow.VersioningBehaviorAutoUpgrade

// These constants name changes to the commands of the workflows, for workflow.GetVersion. Runs that began before a change replay without
// it, and the histories in testdata prove that. Version numbers only grow.
const (
	// changeEndShown (1): a single call that is canceled or fails shows its final status in its search attributes and details
	// before it closes. Before the change, a call that was canceled while it waited was still listed as waiting for a person. The
	// history call-cancel-unshown is from before the change.
	changeEndShown = "2-call-end-shown"
	// changeRest (1): a call that an attempt left open and unchanged waits before it starts again, and the session fails after too many
	// such attempts. Before the change, the call started again at once.
	changeRest = "3-rest-idle-calls"
	// changeTellParent (1): a session that answers a call of another session tells that session which calls wait for people, and a report
	// that arrives after a later one is dropped. Before the change, the parent was shown as working while the child waited. The histories
	// agents-untold are from before the change.
	changeTellParent = "4-tell-parent"
	// changeFailFrame (1): a step that no retry can run fails its composition or extraction. Before the change, the step was started again
	// and again.
	changeFailFrame = "5-fail-frame"
	// changeDecidedEarly (1): a decision that arrives before the run knows that the call waits takes effect as soon as the run learns of it: when
	// the attempt returns that asked, or when the admission of the call does. Before the change, the run missed the decision, and the call
	// waited until it expired.
	changeDecidedEarly = "6-decided-early"
	// changeKeyOrder (1): calls with the same concurrency key run in the order of their ordinals. Before the change, a call that somebody
	// approved before the run knew of the calls of the pass ran before earlier ones.
	changeKeyOrder = "7-key-order"
	// changeUnopenedShown (1): a session that cannot be opened shows in its search attributes and details that it failed or was canceled. Before
	// the change, it was listed as working. The history unopened-unshown is from before the change.
	changeUnopenedShown = "8-unopened-shown"
)
