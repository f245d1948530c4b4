package store

import (
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/chat"
)

// sessionRow is a row of sessions.
type sessionRow struct {
	jig.Session

	AnswerArtifact string
}

// callRow is a row of calls.
type callRow struct {
	jig.Call

	Attempt string
	Result  *storedResult
}

// storedResult is a call's result as its column stores it. It adds the fields that the JSON of an error leaves out.
type storedResult struct {
	jig.ToolResult

	NotExecuted bool `json:"not_executed,omitempty"`
}

// call returns the call as it is stored. A call that failed before its first attempt certainly had no effect.
func (r *callRow) call() jig.Call {
	c := r.Call
	if r.Result == nil {
		return c
	}
	c.Result = &r.Result.ToolResult
	if e := c.Result.Error; e != nil {
		e.NotExecuted = r.Result.NotExecuted || r.Fence == 0
	}
	return c
}

func calls(rows []callRow) []jig.Call {
	list := make([]jig.Call, len(rows))
	for i := range rows {
		list[i] = rows[i].call()
	}
	return list
}

// approvalRow is a row of approvals. Its JSON is decoded when it is needed, because an approval that somebody has made unreadable must not keep
// its call from being withdrawn.
type approvalRow struct {
	jig.Pending

	ID             int64
	Status         approval.Status
	ApprovedDigest string
	NoticedAt      time.Time
	DecidedBy      string
	Claimed        bool

	Reasons, Terms, Votes, Delegations, Question, Preview, Askers, Edits []byte
}

func (r *approvalRow) pending() (jig.Pending, error) {
	p := r.Pending
	for _, part := range []struct {
		text []byte
		into any
	}{
		{r.Reasons, &p.Reasons}, {r.Terms, &p.Terms}, {r.Votes, &p.Votes}, {r.Delegations, &p.Delegations}, {r.Question, &p.Question},
		{r.Preview, &p.Preview}, {r.Askers, &p.Askers}, {r.Edits, &p.Edits},
	} {
		if err := decode(part.text, part.into); err != nil {
			return p, err
		}
	}
	for i := range p.Edits {
		p.Edits[i].At = p.Edits[i].At.UTC()
	}
	seen := r.NoticedAt
	if seen.IsZero() {
		seen = p.RequestedAt
	}
	p.NextAt = approval.NextAt(p, seen)
	return p, nil
}

// listed returns the approval as lists show it.
func (r *approvalRow) listed() (jig.Pending, error) {
	p, err := r.pending()
	p.Edits = approval.ShortEdits(p.Edits)
	return p, err
}

func pendings(rows []approvalRow) ([]jig.Pending, error) {
	list := make([]jig.Pending, len(rows))
	for i := range rows {
		var err error
		if list[i], err = rows[i].listed(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// turnRow is a turn with its body, which comes from the row or from an artifact.
type turnRow struct {
	Pass int
	Body chat.Turn
}

// countRow is a count of calls by status.
type countRow struct {
	Status jig.CallStatus
	Count  int
}

func counts(rows []countRow) map[jig.CallStatus]int {
	m := make(map[jig.CallStatus]int, len(rows))
	for _, r := range rows {
		m[r.Status] = r.Count
	}
	return m
}
