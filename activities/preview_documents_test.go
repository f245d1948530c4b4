package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/bundles"
	"github.com/jig-run/jig/internal/builtin/catalog"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
	"github.com/jig-run/jig/spec"
)

// cabinet is an office whose tools change documents, while somebody else changes them, too. The documents are the policies p and q; each
// version has a rule with a number of its own.
type cabinet struct {
	*office
	t      *testing.T
	random *rand.Rand
	mu     sync.Mutex
	last   int
	// numbers are the numbers of all versions, by kind/name@version.
	numbers map[string]int
	// late, unless nil, is called once, after the checks of a tool and immediately before its transaction.
	late func()
	conn *pgx.Conn
}

// shelves stores documents for the tools.
type shelves struct {
	*store.DB
	a *cabinet
}

func (s shelves) before(by jig.Invocation) {
	if late := s.a.late; late != nil && by.SessionID != rivalSession {
		s.a.late = nil
		late()
	}
}

func (s shelves) RegisterDocuments(ctx context.Context, by jig.Invocation, r bundle.Register) error {
	s.before(by)
	return s.DB.RegisterDocuments(ctx, by, r)
}

func (s shelves) WithdrawDocuments(ctx context.Context, by jig.Invocation, documents []bundle.Key, shown string) (bundle.Plan, error) {
	s.before(by)
	return s.DB.WithdrawDocuments(ctx, by, documents, shown)
}

func (s shelves) InstallBundle(ctx context.Context, by jig.Invocation, b bundle.Install) (bundle.Installed, error) {
	s.before(by)
	return s.DB.InstallBundle(ctx, by, b)
}

func (s shelves) RemoveBundle(ctx context.Context, by jig.Invocation, name, shown string) (bundle.Bundle, []bundle.DocumentVersion, error) {
	s.before(by)
	return s.DB.RemoveBundle(ctx, by, name, shown)
}

func newCabinet(t *testing.T, seed uint64) *cabinet {
	t.Helper()
	a := &cabinet{t: t, random: rand.New(rand.NewPCG(seed, 31)), numbers: map[string]int{}}
	a.office = newOffice(t, func(o *office) {
		s := shelves{o.db, a}
		check := func(context.Context, string, spec.Document, []jig.Tool) error { return nil }
		typeOf := func(context.Context, string, string) (entity.Type, bool, error) { return entity.Type{}, false, nil }
		o.extra = append(catalog.Tools(catalog.Options{
			Store: s, Check: check, TypeOf: typeOf,
			Known: func(context.Context, string) (spec.Catalog, error) { return spec.Catalog{}, nil },
		}), bundles.Tools(bundles.Options{
			Store: s, Check: check, TypeOf: typeOf,
			Known: func(context.Context, string, string) (spec.Catalog, error) { return spec.Catalog{}, nil },
		})...)
	})
	conn, err := pgx.Connect(t.Context(), storetest.OwnerURL(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", a.tenant)
	require.NoError(t, err)
	a.conn = conn
	return a
}

// version returns a new version of a policy.
func (a *cabinet) version(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	body := fmt.Sprintf("kind: policy\nname: %s\nrules:\n  - {name: r%d, when: \"tool.name == 'shop.pay'\", verdict: ask}\n", name, a.last)
	doc, problems := spec.Load(name+".yaml", []byte(body))
	require.Empty(a.t, problems)
	a.numbers["policy/"+name+"@"+doc.Version] = a.last
	return body
}

// manifest returns the input that installs the bundle b with new versions of some documents.
func (a *cabinet) manifest(replace bool, names ...string) bundles.Install {
	in := bundles.Install{Replace: replace}
	for _, name := range names {
		in.Files = append(in.Files, bundles.File{Path: name + ".yaml", Body: a.version(name)})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	body := fmt.Sprintf("kind: bundle\nname: b\nversion: 1.%d.0\ndescription: Rules.\n", a.last)
	in.Files = append(in.Files, bundles.File{Path: "bundle.yaml", Body: body})
	return in
}

const rivalSession = "ses_rival"

// rival does what a tool does, in another session. It may fail.
func (a *cabinet) rival(tool string, input any) {
	raw, err := json.Marshal(input)
	require.NoError(a.t, err)
	by := jig.Invocation{Tenant: a.tenant, SessionID: rivalSession, CallID: "1.1", Principal: jig.Principal{ID: "rita"}, Attempt: 1}
	a.Run(a.t.Context(), tool, raw, by)
}

// clear removes the tenant's own documents, over which a bundle that does not know them cannot be installed.
func (a *cabinet) clear() {
	for _, name := range []string{"p", "q"} {
		a.rival(catalog.RemoveTool, catalog.Names{Documents: []catalog.Named{{Kind: "policy", Name: name}}})
	}
}

// disturb changes documents at random.
func (a *cabinet) disturb() {
	name := []string{"p", "q"}[a.random.IntN(2)]
	switch a.random.IntN(6) {
	case 0, 1:
		a.rival(catalog.PutTool, catalog.Files{Documents: []catalog.File{{Path: name + ".yaml", Body: a.version(name)}}})
	case 2: // the tenant registers what is current, so it belongs to the tenant from now on
		if body, err := a.db.Document(a.t.Context(), a.tenant, "policy", name); err == nil {
			a.rival(catalog.PutTool, catalog.Files{Documents: []catalog.File{{Path: name + ".yaml", Body: string(body)}}})
		}
	case 3:
		a.rival(catalog.RemoveTool, catalog.Names{Documents: []catalog.Named{{Kind: "policy", Name: name}}})
	case 4:
		a.rival(bundles.InstallTool, a.manifest(true, "p", "q"))
	case 5:
		a.rival(bundles.RemoveTool, bundles.Named{Name: "b"})
	}
}

var (
	shownDocument = regexp.MustCompile(`^(?:added|changed|removed): policy (\w)\n`)
	shownBefore   = regexp.MustCompile(`(?m)^-\s+- \{name: r(\d+)`)
	shownAfter    = regexp.MustCompile(`(?m)^\+\s+- \{name: r(\d+)`)
)

// shown lists what a preview says about each document, as "p: 3 → 4".
func shown(p jig.Preview) []string {
	list := []string{}
	for _, change := range p.Changes {
		if name := shownDocument.FindStringSubmatch(change); name != nil {
			list = append(list, effectOn(name[1], first(shownBefore, change), first(shownAfter, change)))
		}
	}
	slices.Sort(list)
	return list
}

func first(pattern *regexp.Regexp, text string) string {
	if found := pattern.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

func effectOn(name, before, after string) string { return name + ": " + before + " → " + after }

// done lists what the audit says that a call did to each document, as shown does.
func (a *cabinet) done(call string) []string {
	rows, err := a.conn.Query(a.t.Context(), `select entry::jsonb->>'subject', coalesce(entry::jsonb->>'reason', '') from audit
		where session_id = $1 and call_id = $2 and kind = 'document'`, a.session, call)
	require.NoError(a.t, err)
	type row struct{ Subject, Reason string }
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	require.NoError(a.t, err)
	list := []string{}
	for _, r := range found {
		name := strings.TrimPrefix(r.Subject[:len("policy/p")], "policy/")
		number := fmt.Sprint(a.numbers[r.Subject])
		before, replaced := strings.CutPrefix(r.Reason, "in place of ")
		switch {
		case r.Reason == "out of use":
			list = append(list, effectOn(name, number, ""))
		case replaced:
			list = append(list, effectOn(name, fmt.Sprint(a.numbers["policy/"+name+"@"+before]), number))
		default:
			list = append(list, effectOn(name, "", number))
		}
	}
	slices.Sort(list)
	return list
}

// Somebody else registers, removes and installs documents at random moments: before the approval, before the second preview, during the call
// and between its checks and its transaction. A call does what was shown with the last approval, or nothing.
func TestPreviewOfDocuments_RacesWithOtherChanges(t *testing.T) {
	t.Parallel()
	const races = 1000
	for seed, row := range []struct {
		tool  string
		input func(a *cabinet) any
	}{
		{catalog.PutTool, func(a *cabinet) any {
			return catalog.Files{Documents: []catalog.File{{Path: "p.yaml", Body: a.version("p")}, {Path: "q.yaml", Body: a.version("q")}}}
		}},
		{catalog.RemoveTool, func(a *cabinet) any {
			in := catalog.Names{}
			for _, name := range []string{"p", "q"} {
				a.rival(catalog.PutTool, catalog.Files{Documents: []catalog.File{{Path: name + ".yaml", Body: a.version(name)}}})
				in.Documents = append(in.Documents, catalog.Named{Kind: "policy", Name: name})
			}
			return in
		}},
		{bundles.InstallTool, func(a *cabinet) any {
			names := []string{"p", "q"}
			if a.random.IntN(4) > 0 {
				a.clear()
			}
			return a.manifest(a.random.IntN(4) > 0, names[:1+a.random.IntN(2)]...)
		}},
		{bundles.RemoveTool, func(a *cabinet) any {
			a.clear()
			a.rival(bundles.InstallTool, a.manifest(true, "p", "q"))
			return bundles.Named{Name: "b"}
		}},
	} {
		t.Run(row.tool, func(t *testing.T) {
			t.Parallel()
			a := newCabinet(t, uint64(seed))
			ends := map[string]int{}
			for range races {
				a.session = a.open(t) // a session would refuse to make the same call twice
				ends[a.race(row.tool, row.input(a))]++
			}
			t.Log(ends)
			require.Greater(t, ends["done"], races/4, "%v", ends)
			require.Greater(t, ends["conflict"], races/50, "%v", ends)
		})
	}
}

// race runs one call while the documents change, and says how it ended.
func (a *cabinet) race(tool string, input any) string {
	raw, err := json.Marshal(input)
	require.NoError(a.t, err)
	disturb := func(chance int) {
		if a.random.IntN(chance) == 0 {
			a.disturb()
		}
	}
	c := a.asks(a.t, 1, tool, string(raw))
	status := a.runs(a.t, c.ID)
	var last *jig.Preview
	for status == jig.CallWaiting {
		disturb(4)
		last = a.approvesAsShown(a.t, c.ID)
		disturb(4)
		if a.random.IntN(4) == 0 {
			a.late = a.disturb
		}
		var racing sync.WaitGroup
		if a.random.IntN(4) == 0 {
			racing.Go(func() {
				a.rival(catalog.PutTool, catalog.Files{Documents: []catalog.File{{Path: "p.yaml", Body: a.version("p")}}})
			})
		}
		status = a.runs(a.t, c.ID)
		racing.Wait()
		a.late = nil
	}
	if last.Missing != "" {
		return "no preview"
	}
	done := a.done(c.ID)
	if status == jig.CallSucceeded {
		require.Equal(a.t, shown(*last), done, "%+v", last)
		return "done"
	}
	require.Empty(a.t, done)
	require.Equal(a.t, jig.CallFailed, status)
	failed := a.call(a.t, c.ID).Result.Error
	switch {
	case failed.Code == jig.CodeNotFound: // the bundle was removed meanwhile
		return "gone"
	case failed.Reason == bundle.ReasonPrecondition:
		return "conflict"
	}
	require.Equal(a.t, jig.CodeConflict, failed.Code, "%v", failed)
	return "unsteady"
}
