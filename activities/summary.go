package activities

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

const (
	// maxSummaryTokens limits the answer of the model that summarizes.
	maxSummaryTokens = 2048
	// maxBareLog is the maximum size, in bytes, of the log that replaces the summary if the model returns no text.
	maxBareLog = 8 << 10
	// summaryInstructions is the system prompt for a summary.
	summaryInstructions = "Summarise the following work log for the one who continues the work: what was asked, what was found (with ids, names and numbers), " +
		"what was decided, what is still open. At most 600 words."
)

// summarize asks the session's own model for a summary of the oldest exchanges, and returns its usage. If the model returns no text, a
// shortened log takes the place of the summary, so that the user's request is not silently forgotten.
func (a *Activities) summarize(ctx context.Context, session jig.Session, pass int, old []chat.Exchange, limits jig.Limits) (string, chat.Usage, error) {
	log := workLog(session.Summary, old)
	turn, err := a.Model.Answer(ctx, chat.Request{
		Model:  session.Agent.Model,
		System: summaryInstructions,
		Exchanges: []chat.Exchange{
			{Messages: []chat.Message{{Role: chat.RoleUser, Text: cutMiddle(log, bytesOf(limits.TokenBudget))}}},
		},
		MaxTokens: min(limits.MaxTokens, maxSummaryTokens), SessionID: session.ID, Pass: pass, Tenant: session.Tenant, Summary: true,
	}, func(string) {})
	silent := err == nil && strings.TrimSpace(turn.Text) == "" || err != nil && jig.AsError(err).Reason == jig.ReasonNoAnswer
	if err != nil && !silent {
		return "", chat.Usage{}, a.unanswered(ctx, session, pass, err)
	}
	if silent {
		return cutMiddle(log, maxBareLog), turn.Usage, nil
	}
	return turn.Text, turn.Usage, nil
}

// workLog formats exchanges as text, one line for each message and call, after the summary of the earlier ones.
func workLog(before string, old []chat.Exchange) string {
	var b strings.Builder
	if before != "" {
		b.WriteString("Summary so far: " + before + "\n")
	}
	for _, e := range old {
		for _, m := range e.Messages {
			fmt.Fprintf(&b, "User: %s\n", jig.Cut(m.Text, 2000))
		}
		if e.Turn != nil && e.Turn.Text != "" {
			fmt.Fprintf(&b, "Assistant: %s\n", jig.Cut(e.Turn.Text, 2000))
		}
		for _, c := range e.Calls {
			summary := string(c.Status)
			if c.Result != nil {
				summary = c.Result.Summary
			}
			fmt.Fprintf(&b, "Call %s %s(%s): %s\n", c.ID, c.Tool, jig.Cut(string(c.Input), 300), jig.Cut(summary, 300))
		}
	}
	return b.String()
}

// cutMiddle shortens a text to about n bytes without splitting characters. It keeps the beginning, which says what was asked for,
// and the end, which says what was done last.
func cutMiddle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	from := len(s) - n/2
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return jig.Cut(s, n/2) + "\n" + s[from:]
}
