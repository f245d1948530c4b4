package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/store/storetest"
)

// bundleModel holds a tenant's documents and bundles in memory.
type bundleModel struct {
	// current holds the documents in use, by kind/name.
	current map[string]ownedBy
	bundles map[string]bundle.Install
}

// ownedBy is a version and the bundle that made it current, or "" if no bundle did.
type ownedBy struct{ version, owner string }

func versionsIn(b bundle.Install) map[string]string {
	versions := map[string]string{}
	for _, d := range b.Documents {
		versions[d.Kind+"/"+d.Name] = d.Version
	}
	return versions
}

// refusal returns the reason for refusing a bundle, or "".
func (m *bundleModel) refusal(b bundle.Install) string {
	had := versionsIn(m.bundles[b.Name])
	if m.bundles[b.Name].Hash != b.Over {
		return "bundle_changed"
	}
	for _, name := range b.Requires {
		if _, there := m.bundles[name]; !there || name == b.Name {
			return jig.ReasonBundleNotInstalled
		}
	}
	reason := ""
	for name, version := range versionsIn(b) {
		have, there := m.current[name]
		if there && have.version == version {
			continue
		}
		for other, o := range m.bundles {
			if v := versionsIn(o)[name]; other != b.Name && v != "" && v != version {
				return "document_taken"
			}
		}
		switch {
		case !there || have.owner != "":
		case had[name] == "":
			return "document_taken"
		case have.version != had[name] && !b.Replace:
			reason = "document_changed"
		}
	}
	return reason
}

// unchanged reports whether installing the bundle changes nothing.
func (m *bundleModel) unchanged(b bundle.Install) bool {
	before, there := m.bundles[b.Name]
	if !there || before.Hash != b.Hash {
		return false
	}
	if b.Replace {
		for name, version := range versionsIn(b) {
			if have := m.current[name]; have.owner == "" && have.version != version {
				return false
			}
		}
	}
	return true
}

func (m *bundleModel) install(b bundle.Install) {
	m.drop(b.Name, versionsIn(b))
	for name, version := range versionsIn(b) {
		if have := m.current[name]; have.version != version || have.owner == "" {
			m.current[name] = ownedBy{version, b.Name}
		}
	}
	m.bundles[b.Name] = b
}

// drop removes the documents of a bundle that are not in keeps.
func (m *bundleModel) drop(bundle string, keeps map[string]string) {
	for name := range versionsIn(m.bundles[bundle]) {
		if keeps[name] == "" && m.current[name].owner == bundle {
			m.inherit(name, bundle)
		}
	}
}

// inherit gives a document to the first bundle that has it, except the one that gives it up.
func (m *bundleModel) inherit(name, except string) {
	heirs := make([]string, 0, len(m.bundles))
	for heir := range m.bundles {
		heirs = append(heirs, heir)
	}
	slices.Sort(heirs)
	delete(m.current, name)
	for _, heir := range heirs {
		if v := versionsIn(m.bundles[heir])[name]; heir != except && v != "" {
			m.current[name] = ownedBy{v, heir}
			return
		}
	}
}

func (m *bundleModel) required(bundle string) bool {
	for name, b := range m.bundles {
		if name != bundle && slices.Contains(b.Requires, bundle) {
			return true
		}
	}
	return false
}

func (m *bundleModel) list() []string {
	list := []string{}
	for name, d := range m.current {
		if d.owner != "" {
			d.owner = "<" + d.owner + ">"
		}
		list = append(list, name+"@"+d.version+d.owner)
	}
	slices.Sort(list)
	return list
}

func randomBundle(r *rand.Rand, m *bundleModel) bundle.Install {
	name := pick(r, []string{"a", "b", "c"})
	b := bundleOf(name, fmt.Sprintf("1.0.%d", r.IntN(3)), func(b *bundle.Install) {
		b.Replace = r.IntN(3) == 0
		if r.IntN(10) > 0 {
			b.Over = m.bundles[name].Hash
		}
		if r.IntN(6) == 0 {
			b.Requires = []string{pick(r, []string{"a", "b", "c"})}
		}
	})
	own, foreign := []string{"tool/" + name + "1", "tool/" + name + "2"}, []string{"tool/shared", "tool/d1"}
	for _, d := range append(own, foreign...) {
		if r.IntN(4) > 0 && (slices.Contains(own, d) || r.IntN(3) == 0) {
			d += fmt.Sprintf("@v%d", 1+r.IntN(2))
			b.Documents = append(b.Documents, bundle.StoredDocument{DocumentVersion: document(d), Body: []byte(d)})
			b.Hash += "," + d
		}
	}
	b.Hash += strings.Join(b.Requires, ",")
	return b
}

// After any sequence of installing, putting and removing, the documents in use and their owners match a model in memory.
func TestBundles_MatchAModel(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(12, 13))
	seen := map[string]int{}
	db := storetest.New(t)
	conn, err := pgx.Connect(t.Context(), storetest.URL(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	for range 30 {
		w := world{DB: db, tenant: storetest.Tenant(t)}
		m := &bundleModel{current: map[string]ownedBy{}, bundles: map[string]bundle.Install{}}
		_, err := conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", w.tenant)
		require.NoError(t, err)
		var story []string
		for range 40 {
			what, outcome := w.anything(t, r, m)
			story = append(story, what+" -> "+outcome)
			seen[strings.Fields(what)[0]+" "+outcome]++
			rows, err := conn.Query(t.Context(), currentDocuments)
			require.NoError(t, err)
			current, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			require.Equal(t, m.list(), current, "%s", strings.Join(story, "\n"))
			names, err := w.BundleNames(t.Context(), w.tenant)
			require.NoError(t, err)
			require.Len(t, names, len(m.bundles))
			for _, name := range names {
				require.Contains(t, m.bundles, name)
				for d := range versionsIn(m.bundles[name]) {
					require.Contains(t, m.current, d, "what a bundle brought is there in some version:\n%s", strings.Join(story, "\n"))
				}
			}
		}
	}
	for _, outcome := range []string{
		"install changed", "install unchanged", "install bundle_changed", "install bundle_not_installed", "install document_taken",
		"install document_changed", "remove done", "remove NOT_FOUND", "remove bundle_required", "put done",
		"withdraw done", "withdraw NOT_FOUND", "withdraw document_of_bundle",
	} {
		require.GreaterOrEqual(t, seen[outcome], 3, "%s in %v", outcome, seen)
	}
}

// anything applies one random operation to the store and the model, and describes it and its outcome.
func (w world) anything(t *testing.T, r *rand.Rand, m *bundleModel) (what, outcome string) {
	t.Helper()
	switch r.IntN(9) {
	case 0:
		d := document(fmt.Sprintf("tool/%s@v%d", pick(r, []string{"a1", "a2", "b1", "b2", "c1", "d1", "shared"}), 1+r.IntN(3)))
		require.NoError(t, w.PutDocument(t.Context(), w.tenant, d.Kind, d.Name, d.Version, []byte("tool/"+d.Name+"@"+d.Version)))
		m.current[d.Kind+"/"+d.Name] = ownedBy{d.Version, ""}
		return "put " + d.Name + "@" + d.Version, "done"
	case 1:
		name := pick(r, []string{"a", "b", "c"})
		_, _, err := w.RemoveBundle(t.Context(), w.operator(), name, "")
		what = "remove " + name
		if _, there := m.bundles[name]; !there {
			requireCode(t, jig.CodeNotFound, err)
			return what, "NOT_FOUND"
		}
		if m.required(name) {
			requireReason(t, jig.CodeConflict, "bundle_required", err)
			return what, "bundle_required"
		}
		require.NoError(t, err)
		m.drop(name, nil)
		delete(m.bundles, name)
		return what, "done"
	case 2:
		name := pick(r, []string{"a1", "b1", "shared"})
		_, err := w.WithdrawDocuments(t.Context(), w.operator(), []bundle.Key{{Kind: "tool", Name: name}}, "")
		what = "withdraw " + name
		have, there := m.current["tool/"+name]
		switch {
		case !there:
			requireCode(t, jig.CodeNotFound, err)
			return what, "NOT_FOUND"
		case have.owner != "":
			requireReason(t, jig.CodeConflict, "document_of_bundle", err, have.owner)
			return what, "document_of_bundle"
		}
		require.NoError(t, err)
		m.inherit("tool/"+name, "")
		return what, "done"
	}
	b := randomBundle(r, m)
	if before, there := m.bundles[b.Name]; there && r.IntN(4) == 0 {
		b.Manifest, b.Hash, b.Documents = before.Manifest, before.Hash, before.Documents
	}
	what = fmt.Sprintf("install %s over %q, replace %t", b.Name+" "+b.Hash, b.Over, b.Replace)
	done, err := w.InstallBundle(t.Context(), w.operator(), b)
	if m.unchanged(b) {
		require.NoError(t, err)
		require.False(t, done.Changed)
		return what, "unchanged"
	}
	if reason := m.refusal(b); reason != "" {
		require.Error(t, err, what)
		require.Equal(t, reason, jig.AsError(err).Reason, "%s: %v", what, err)
		return what, reason
	}
	require.NoError(t, err, what)
	require.True(t, done.Changed)
	m.install(b)
	return what, "changed"
}
