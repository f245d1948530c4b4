package notify

import (
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
)

const (
	// maxSummary and maxShown bound, in characters, the summary of a call and the other values in a message to people.
	maxSummary = 600
	maxShown   = 120
)

// Words are a notice in words, for mail and chats. They say what happened and where to decide; nobody can decide by replying to them.
type Words struct {
	Subject string
	// Lines are the facts, without the link.
	Lines []string
	// Link is the address of the approval; empty if the server's address is not known.
	Link string
}

// WordsOf returns the words of a notice. publicURL is the address of the server; it may be empty. The call's input is not part of them,
// because mail and chats are read in more places than approvals.
func WordsOf(n jig.Notice, publicURL string) Words {
	a := n.Approval
	w := Words{Subject: subject(n)}
	if s := shown(a.Summary, maxSummary); s != "" {
		w.Lines = append(w.Lines, s, "")
	}
	add := func(label, value string) {
		if value = shown(value, maxShown); value != "" {
			w.Lines = append(w.Lines, label+": "+value)
		}
	}
	add("Tool", a.Tool)
	add("Requested by", strings.TrimPrefix(approval.Requesters(a), "requested by "))
	add("Tenant", n.Tenant)
	add("Session", a.SessionID+", call "+a.Call)
	switch n.Kind {
	case jig.NoticeDecided, jig.NoticeExpired:
		add("Status", string(n.Status))
		add("Decided by", n.By+n.Proof.Mark(false))
		add("Reason", n.Reason)
	case jig.NoticeWithdrawn:
		add("Approved before by", approvers(n))
		add("Reason", n.Reason)
	case jig.NoticeRequested, jig.NoticeReminder, jig.NoticeEscalated, jig.NoticeDelegated:
		add("Who may decide", approvers(n))
		if a.Kind == jig.PendingApproval {
			w.Lines = append(w.Lines, "Terms: "+shown(strings.Join(approval.Conditions(a), "; "), maxSummary))
		}
		if a.ExpiresAt.Year() > 1 {
			add("Until", a.ExpiresAt.UTC().Format("2006-01-02 15:04 MST"))
		}
		w.Lines = append(w.Lines, "How to decide: jig approvals show "+shown(a.SessionID+" "+a.Call, maxSummary))
	}
	if publicURL != "" {
		w.Link = strings.TrimSuffix(publicURL, "/") + "/approvals/" + url.PathEscape(a.SessionID) + "?call=" + url.QueryEscape(a.Call)
	}
	return w
}

// subject says in one line what a notice is about.
func subject(n jig.Notice) string {
	tool := shown(n.Approval.Tool, maxShown)
	what := tool + " needs approval"
	switch n.Approval.Kind {
	case jig.PendingQuestion:
		what = tool + " asks a question"
	case jig.PendingReconcile:
		what = "did " + tool + " take effect?"
	case jig.PendingApproval:
	}
	switch n.Kind {
	case jig.NoticeReminder:
		return "Reminder: " + what
	case jig.NoticeEscalated:
		return "Escalated: " + what
	case jig.NoticeDelegated:
		return "Handed on: " + what
	case jig.NoticeDecided:
		return "Decided: " + tool
	case jig.NoticeExpired:
		return "Expired: nobody decided about " + tool + " in time"
	case jig.NoticeWithdrawn:
		return "Withdrawn: the approval of " + tool + " does not count any more"
	case jig.NoticeRequested:
	}
	return what
}

// Text returns the words as plain text.
func (w Words) Text() string {
	text := strings.Join(w.Lines, "\n")
	if w.Link != "" {
		text += "\n\nLook at it and decide:\n" + w.Link
	}
	return text + "\n\nThis message is for information only. Replying to it decides nothing.\n"
}

// shown returns a text on one line, cut, without characters that could make it look like something else.
func shown(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r):
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}

// tellTimeout is how long telling people may take, like [SendTimeout] for webhooks.
const tellTimeout = SendTimeout + 5*time.Second
