package starter

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/internal/remote"
)

// report is a text like the report of the agent dependency-review.
func report() string {
	lines := []string{"# Dependency review of github.com/jig-run/jig", "", "| module | version | license |", "| --- | --- | --- |"}
	for i := range 30 {
		lines = append(lines, fmt.Sprintf("| example.com/module%d | v1.%d.0 | MIT |", i, i))
	}
	return strings.Join(lines, "\n") + "\n"
}

// writingCall is a call of file.write that waits, as lists show it.
func writingCall(path, before, after string) jig.Pending {
	p := waitingCall()
	input, err := json.Marshal(map[string]string{"path": path, "content": after})
	if err != nil {
		panic(err)
	}
	p.SessionID, p.RequestedBy, p.Agent = "ses_1", "ana", "dependency-review"
	p.Input, p.Truncated = jig.Excerpt(input, jig.ExcerptBytes)
	whole := jig.Preview{
		Title: "Creates " + path + " (1.4 KB)", Changes: []string{preview.All(path, "+", after)}, Precondition: "a path without a file",
	}
	if before != "" {
		whole.Title, whole.Changes = "Replaces "+path, []string{preview.Diff(path, before, after)}
	}
	short, cut := preview.Fit(whole, jig.ExcerptBytes)
	p.Preview, p.Truncated, p.Reasons = &short, p.Truncated || cut, []string{"file.write changes data (permission write)"}
	return p
}

func TestCard_OfAnOrdinaryWriteFitsOnAScreen(t *testing.T) {
	t.Parallel()
	long := report()
	for name, p := range map[string]jig.Pending{
		"a new file":     writingCall("reports/dependency-review.md", "", long),
		"a larger one":   writingCall("reports/dependency-review.md", "", long+long),
		"a change":       writingCall("reports/dependency-review.md", long, strings.Replace(long, "v1.7.0", "v1.8.0", 1)),
		"a short file":   writingCall("reports/hello.md", "", "hello"),
		"several hunks":  writingCall("a.md", long, strings.NewReplacer("v1.3.0", "v2", "v1.15.0", "v2", "v1.27.0", "v2").Replace(long)),
		"one long line":  writingCall("a.txt", "", strings.Repeat("word ", 100)),
		"without a line": writingCall("a.txt", "", ""),
	} {
		a := newApp("jig", nil, nil, nil, nil)
		k := card{Pending: p}
		text := "ses_1 " + a.cardText(palette{}, k) + "\n" + a.commandsText(palette{}, k)
		require.LessOrEqual(t, strings.Count(text, "\n")+1, 25, "%s:\n%s", name, text)
		k.whole = true
		require.LessOrEqual(t, strings.Count(a.cardText(palette{}, k), "| example.com/module20 |"), 2, name)
	}
	p := writingCall("reports/dependency-review.md", "", long)
	a := newApp("jig", nil, nil, nil, nil)
	require.Equal(t, `3.1 file.write waits for approval
  preview: Creates reports/dependency-review.md (1.4 KB)
  │ reports/dependency-review.md
  │ +# Dependency review of github.com/jig-run/jig
  │ +
  │ +| module | version | license |
  │ +| --- | --- | --- |
  │ +| example.com/module0 | v1.0.0 | MIT |
  │ +| example.com/module1 | v1.1.0 | MIT |
  │ +| example.com/module2 | v1.2.0 | MIT |
  │ +| example.com/module3 | v1.3.0 | MIT |
  an approval is bound to it: exactly this happens, or nothing: the tool acts only on a path without a file
  26 more lines: jig approvals show ses_1 3.1
    content: 1308 bytes, as above
    path: reports/dependency-review.md
  · file.write changes data (permission write)
  requested by ana, agent dependency-review
  anybody may decide
`, strings.Join(strings.SplitAfter(a.cardText(palette{}, card{Pending: p}), "\n")[:18], ""))
}

// A text is left out only if a diff shows exactly this text.
func TestInputText_LeavesOutWhatThePreviewShows(t *testing.T) {
	t.Parallel()
	long := report()
	changed := strings.Replace(long, "v1.7.0", "v1.8.0", 1)
	for name, row := range map[string]struct {
		content string
		changes []string
		left    bool
	}{
		"a new file":            {long, []string{preview.All("a.md", "+", long)}, true},
		"a change":              {changed, []string{preview.Diff("a.md", long, changed)}, true},
		"beside other changes":  {changed, []string{"LOOSER: nobody asks", preview.Diff("b.md", "a\n", "b\n"), preview.Diff("a.md", long, changed)}, true},
		"another text":          {long, []string{preview.All("a.md", "+", changed)}, false},
		"another change":        {long, []string{preview.Diff("a.md", long, changed)}, false},
		"more than is shown":    {long + "and more\n", []string{preview.All("a.md", "+", long)}, false},
		"a removed file":        {long, []string{preview.All("a.md", "-", long)}, false},
		"a cut diff":            {long, []string{"a.md\n+# Dependency review of github.com/jig-run/jig\n… 900 more bytes, which do not fit here (SHA-256 of all 00)"}, false},
		"a cut change":          {long, []string{"a.md\n@@ -1 +1 @@\n-x\n+# Dependency review of github.com/jig-run/jig\n… 900 more bytes, which do not fit here (SHA-256 of all 00)"}, false},
		"a diff that ends in …": {long, []string{"a.md\n+# Dependency…"}, false},
		"a title":               {long, []string{"a.md"}, false},
		"no changes":            {long, nil, false},
	} {
		input, err := json.Marshal(map[string]any{"documents": []any{map[string]string{"path": "a.md", "body": row.content}}, "content": row.content})
		require.NoError(t, err)
		text := inputText(jig.Pending{Input: withoutCovered(input, &jig.Preview{Title: "x", Changes: row.changes})}, 0)
		require.Equal(t, row.left, strings.Contains(text, fmt.Sprintf("content: %d bytes, as above", len(row.content))), "%s: %s", name, text)
		require.Equal(t, row.left, strings.Contains(text, fmt.Sprintf(`"body":"%d bytes, as above"`, len(row.content))) ||
			strings.Contains(text, fmt.Sprintf(`"body": "%d bytes, as above"`, len(row.content))), "%s: %s", name, text)
	}
}

func TestCard_OfAnUndoSaysWhatItUndoesAndWhy(t *testing.T) {
	t.Parallel()
	p := waitingCall()
	p.Call, p.SessionID, p.Reasons = "1.1/reserve.undo", "ses_1", []string{"undoes 1.1/reserve, because: the shop is closed", "changed by ana: n: 1 → 2", "a write asks"}
	lines := strings.Split(newApp("jig", nil, nil, nil, nil).cardText(palette{}, card{Pending: p}), "\n")
	require.Equal(t, []string{"1.1/reserve.undo file.write waits for approval", "  undoes 1.1/reserve, because: the shop is closed", "  changed by ana: n: 1 → 2"}, lines[:3])
	got := jigCLI(t, &fake{view: jig.SessionView{SessionID: "ses_1", Status: jig.StatusWorking, Pending: []jig.Pending{p}}}, nil, "status", "ses_1")
	require.Regexp(t, `(?m)^error +the shop is closed; what was done is being undone$`, got.stdout)
}

func TestCard_OverHTTPOffersNoCommandOfTemporal(t *testing.T) {
	t.Parallel()
	a := newApp("jig", nil, nil, nil, nil)
	p := waitingCall()
	require.Contains(t, a.commandsText(palette{}, card{Pending: p}), "temporal workflow signal")
	a.server = &remote.Client{}
	for _, kind := range []jig.PendingKind{jig.PendingApproval, jig.PendingQuestion, jig.PendingReconcile} {
		p.Kind = kind
		require.NotContains(t, a.commandsText(palette{}, card{Pending: p}), "temporal")
	}
}
