package store_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/store/storetest"
)

// bundleOf returns a bundle of documents written as kind/name@version. Its hash depends on its version and documents.
func bundleOf(name, version string, change func(*bundle.Install), documents ...string) bundle.Install {
	b := bundle.Install{
		Manifest: bundle.Manifest{Name: name, Version: version, Title: "The bundle " + name},
		Hash:     "h-" + version + "-" + strings.Join(documents, ","),
	}
	for _, d := range documents {
		b.Documents = append(b.Documents, bundle.StoredDocument{DocumentVersion: document(d), Body: []byte(d)})
	}
	if change != nil {
		change(&b)
	}
	return b
}

func over(before bundle.Install) func(*bundle.Install) {
	return func(b *bundle.Install) { b.Over = before.Hash }
}

func replacing(before bundle.Install) func(*bundle.Install) {
	return func(b *bundle.Install) { b.Over, b.Replace = before.Hash, true }
}

func requiring(names ...string) func(*bundle.Install) {
	return func(b *bundle.Install) { b.Requires = names }
}

// document parses kind/name@version.
func document(s string) bundle.DocumentVersion {
	kind, rest, _ := strings.Cut(s, "/")
	name, version, _ := strings.Cut(rest, "@")
	return bundle.DocumentVersion{Kind: kind, Name: name, Version: version}
}

func (w world) operator() jig.Invocation {
	return jig.Invocation{Tenant: w.tenant, SessionID: "ses_operator", CallID: "1.1", Principal: jig.Principal{ID: "ana", Claimed: true}}
}

func (w world) install(t *testing.T, b bundle.Install) bundle.Installed {
	t.Helper()
	done, err := w.InstallBundle(t.Context(), w.operator(), b)
	require.NoError(t, err)
	return done
}

// put registers a document outside any bundle.
func (w world) put(t *testing.T, s string) {
	t.Helper()
	d := document(s)
	require.NoError(t, w.register(t, bundle.StoredDocument{DocumentVersion: d, Body: []byte(s)}))
}

// register registers a document of the tenant's own.
func (w world) register(t *testing.T, d bundle.StoredDocument, types ...bundle.TypeBasis) error {
	t.Helper()
	return w.RegisterDocuments(t.Context(), w.operator(), bundle.Register{Documents: []bundle.StoredDocument{d}, Types: types})
}

const currentDocuments = `select kind || '/' || name || '@' || version || case bundle when '' then '' else '<' || bundle || '>' end
	from documents where current order by kind collate "C", name collate "C"`

// current lists the documents in use as kind/name@version, sorted, with <bundle> appended when a bundle made them current.
func (w world) current(t *testing.T) []string {
	t.Helper()
	return w.column(t, currentDocuments)
}

// audits lists kind, subject and reason of the tenant's audit rows about bundles and documents.
func (w world) audits(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, row := range w.entries(t) {
		if row.Kind == audit.AuditBundle || row.Kind == audit.AuditDocument {
			require.Equal(t, "ana", row.By)
			require.True(t, row.Claimed)
			list = append(list, strings.TrimSuffix(string(row.Kind)+" "+row.Subject+" "+row.Reason, " "))
		}
	}
	return list
}

func requireReason(t *testing.T, code jig.Code, reason string, err error, says ...string) {
	t.Helper()
	requireCode(t, code, err)
	require.Equal(t, reason, jig.AsError(err).Reason, "%v", err)
	for _, s := range says {
		require.ErrorContains(t, err, s)
	}
}

func TestInstallBundle_InstallsAndUpgrades(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	one := bundleOf("review", "1.0.0", nil, "tool/b@v1", "agent/z@v1", "agent/a@v1")
	one.Description = "what it is for"
	done := w.install(t, one)
	require.True(t, done.Changed)
	require.Empty(t, done.Before)
	require.Equal(t, one.Manifest, done.Bundle.Manifest)
	require.Equal(t, []bundle.DocumentVersion{document("agent/a@v1"), document("agent/z@v1"), document("tool/b@v1")}, done.Bundle.Documents)
	require.Equal(t, "ana", done.Bundle.InstalledBy)
	require.False(t, done.Bundle.InstalledAt.IsZero())
	installed, err := w.Bundles(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Equal(t, []bundle.Bundle{done.Bundle}, installed)
	require.Equal(t, []string{"agent/a@v1<review>", "agent/z@v1<review>", "tool/b@v1<review>"}, w.current(t))

	before := w.dump(t)
	for _, repeated := range []bundle.Install{one, bundleOf("review", "1.0.0", replacing(one), "tool/b@v1", "agent/z@v1", "agent/a@v1")} {
		again := w.install(t, repeated)
		require.Equal(t, bundle.Installed{Bundle: done.Bundle, Before: "1.0.0"}, again)
	}
	require.Equal(t, before, w.dump(t), "nothing is written")

	two := bundleOf("review", "2.0.0", over(one), "tool/b@v1", "agent/a@v2", "agent/new@v1")
	done = w.install(t, two)
	require.True(t, done.Changed)
	require.Equal(t, "1.0.0", done.Before)
	require.Equal(t, []bundle.DocumentVersion{document("agent/z@v1")}, done.Removed)
	require.Equal(t, []string{"agent/a@v2<review>", "agent/new@v1<review>", "tool/b@v1<review>"}, w.current(t))
	names, err := w.DocumentNames(t.Context(), w.tenant, "agent")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "new"}, names)
	_, err = w.Document(t.Context(), w.tenant, "agent", "z")
	requireCode(t, jig.CodeNotFound, err)
	body, err := w.DocumentAt(t.Context(), w.tenant, "agent", "z", "v1")
	require.NoError(t, err, "running sessions keep it")
	require.Equal(t, "agent/z@v1", string(body))
	require.Equal(t, []string{
		"bundle bundle/review@1.0.0+" + one.Hash, "document tool/b@v1", "document agent/z@v1", "document agent/a@v1",
		"bundle bundle/review@2.0.0+" + two.Hash + " in place of 1.0.0+" + one.Hash,
		"document agent/z@v1 out of use", "document agent/a@v2 in place of v1", "document agent/new@v1",
	}, w.audits(t))

	back := one
	back.Over = two.Hash
	w.install(t, back)
	require.Equal(t, []string{"agent/a@v1<review>", "agent/z@v1<review>", "tool/b@v1<review>"}, w.current(t))
}

func TestInstallBundle_RefusesConflicts(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	install := func(b bundle.Install) error {
		_, err := w.InstallBundle(t.Context(), w.operator(), b)
		return err
	}
	w.put(t, "agent/own@v1")
	a := bundleOf("a", "1.0.0", nil, "agent/x@v1", "agent/y@v1")
	requireReason(t, jig.CodeConflict, "bundle_changed", install(bundleOf("a", "1.0.0", over(a), "agent/x@v1")))
	w.install(t, a)
	w.put(t, "agent/y@v2")
	before := w.dump(t)
	requireReason(t, jig.CodeConflict, "bundle_changed", install(bundleOf("a", "1.1.0", nil, "agent/x@v2")))
	err := install(bundleOf("b", "1.0.0", requiring("a", "c", "b"), "agent/b@v1"))
	requireReason(t, jig.CodeInvalidInput, jig.ReasonBundleNotInstalled, err, "c, b")
	require.Equal(t, "requires", jig.AsError(err).Field)
	err = install(bundleOf("b", "1.0.0", nil, "agent/fresh@v1", "agent/own@v2", "agent/x@v2", "agent/y@v3"))
	requireReason(t, jig.CodeConflict, "document_taken", err,
		"agent/own (the tenant's own)", "agent/x (of the bundle a)", "agent/y (of the bundle a)")
	err = install(bundleOf("a", "1.1.0", over(a), "agent/x@v2", "agent/y@v3"))
	requireReason(t, jig.CodeConflict, "document_changed", err, "agent/y")
	require.NotContains(t, err.Error(), "agent/x")
	require.Contains(t, jig.AsError(err).Hint, "replace: true")
	requireReason(t, jig.CodeConflict, "document_taken", install(bundleOf("a", "1.1.0", replacing(a), "agent/y@v3", "agent/own@v2")))

	for field, odd := range map[string]bundle.Install{
		"name": bundleOf("A bundle", "1.0.0", nil), "version": bundleOf("a", "1", nil),
		"hash":      bundleOf("a", "1.0.0", func(b *bundle.Install) { b.Hash = "" }),
		"documents": bundleOf("a", "1.0.0", nil, "agent/x@v1", "agent/x@v2"),
	} {
		err := install(odd)
		requireCode(t, jig.CodeInvalidInput, err)
		require.Equal(t, field, jig.AsError(err).Field)
	}
	requireCode(t, jig.CodeInvalidInput, install(bundleOf("a", "1.1.0", over(a), "agent/@v1")))
	require.Equal(t, before, w.dump(t), "nothing has changed")
	_, err = w.InstallBundle(t.Context(), jig.Invocation{Tenant: jig.GlobalTenant}, a)
	requireCode(t, jig.CodeNotPermitted, err)
	_, _, err = w.RemoveBundle(t.Context(), jig.Invocation{Tenant: jig.GlobalTenant}, "a", "")
	requireCode(t, jig.CodeNotPermitted, err)
}

func TestInstallBundle_KeepsTheTenantsOwnDocuments(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	w.put(t, "agent/same@v1")
	one := bundleOf("a", "1.0.0", nil, "agent/same@v1", "agent/x@v1", "agent/y@v1", "agent/z@v1")
	w.install(t, one)
	require.Equal(t, "agent/same@v1<a>", w.current(t)[0], "the identical version is adopted")
	w.put(t, "agent/x@mine")
	w.put(t, "agent/y@v1")
	require.NoError(t, w.PutDocument(t.Context(), w.tenant, "agent", "z", "mine", nil))
	require.Equal(t, []string{"agent/same@v1<a>", "agent/x@mine", "agent/y@v1", "agent/z@mine"}, w.current(t), "documents that the tenant puts are its own")

	two := bundleOf("a", "2.0.0", replacing(one), "agent/same@v2", "agent/x@v2", "agent/y@v2")
	require.Empty(t, w.install(t, two).Removed)
	require.Equal(t, []string{"agent/same@v2<a>", "agent/x@v2<a>", "agent/y@v2<a>", "agent/z@mine"}, w.current(t), "z no longer belongs to the bundle")

	w.put(t, "agent/x@mine")
	require.False(t, w.install(t, bundleOf("a", "2.0.0", over(two), "agent/same@v2", "agent/x@v2", "agent/y@v2")).Changed)
	require.Contains(t, w.current(t), "agent/x@mine")
	require.True(t, w.install(t, bundleOf("a", "2.0.0", replacing(two), "agent/same@v2", "agent/x@v2", "agent/y@v2")).Changed)
	require.Contains(t, w.current(t), "agent/x@v2<a>", "with replace, the bundle's version becomes current again")
}

func TestRemoveBundle_TakesItsDocumentsOutOfUse(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	a := bundleOf("a", "1.0.0", nil, "agent/shared@v1", "agent/x@v1", "agent/y@v1")
	w.install(t, a)
	w.install(t, bundleOf("b", "1.0.0", requiring("a"), "agent/shared@v1", "agent/b@v1"))
	w.install(t, bundleOf("c", "1.0.0", nil, "agent/shared@v1"))
	require.Contains(t, w.current(t), "agent/shared@v1<a>")
	w.put(t, "agent/y@mine")
	before := w.dump(t)
	_, _, err := w.RemoveBundle(t.Context(), w.operator(), "a", "")
	requireReason(t, jig.CodeConflict, "bundle_required", err, "by b")
	requireReason(t, jig.CodeConflict, "document_taken", func() error {
		_, err := w.InstallBundle(t.Context(), w.operator(), bundleOf("a", "1.1.0", over(a), "agent/shared@v2"))
		return err
	}(), "agent/shared (of the bundle b)")
	require.Equal(t, before, w.dump(t))

	for _, name := range []string{"b", "a"} {
		gone, _, err := w.RemoveBundle(t.Context(), w.operator(), name, "")
		require.NoError(t, err)
		require.Equal(t, name, gone.Name)
		_, _, err = w.RemoveBundle(t.Context(), w.operator(), name, "")
		requireCode(t, jig.CodeNotFound, err)
	}
	require.Equal(t, []string{"agent/shared@v1<c>", "agent/y@mine"}, w.current(t), "documents of other bundles, and the tenant's own, stay")
	names, err := w.BundleNames(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Equal(t, []string{"c"}, names)
	_, err = w.DocumentAt(t.Context(), w.tenant, "agent", "x", "v1")
	require.NoError(t, err)
	list := w.audits(t)
	require.Equal(t, []string{
		"bundle bundle/b@1.0.0+h-1.0.0-agent/shared@v1,agent/b@v1 removed", "document agent/b@v1 out of use",
		"bundle bundle/a@1.0.0+" + a.Hash + " removed", "document agent/x@v1 out of use",
	}, list[len(list)-4:])

	done := w.install(t, bundleOf("a", "1.0.0", nil, "agent/x@v1"))
	require.True(t, done.Changed)
	require.Empty(t, done.Before, "it was not installed")
	require.Contains(t, w.current(t), "agent/x@v1<a>")
}

func TestInstallBundle_Concurrently(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	same, errs := make([]bundle.Installed, 8), make([]error, 16)
	var wait sync.WaitGroup
	for i := range same {
		wait.Go(func() {
			same[i], errs[i] = w.InstallBundle(t.Context(), w.operator(), bundleOf("a", "1.0.0", nil, "agent/x@v1"))
		})
		wait.Go(func() {
			version := bundle.DocumentVersion{Kind: "agent", Name: "y", Version: "v" + string(rune('a'+i))}
			errs[8+i] = w.register(t, bundle.StoredDocument{DocumentVersion: version})
		})
	}
	wait.Wait()
	changed := 0
	for i, done := range same {
		require.NoError(t, errs[i])
		if done.Changed {
			changed++
		}
	}
	require.Equal(t, 1, changed)
	a := bundleOf("a", "1.0.0", nil, "agent/x@v1")
	for i := range 8 {
		wait.Go(func() {
			b := bundleOf("a", "2.0."+string(rune('0'+i)), over(a), "agent/x@v"+string(rune('2'+i)))
			_, errs[i] = w.InstallBundle(t.Context(), w.operator(), b)
		})
	}
	wait.Wait()
	won := 0
	for _, err := range errs[:8] {
		if err == nil {
			won++
			continue
		}
		requireReason(t, jig.CodeConflict, "bundle_changed", err)
	}
	require.Equal(t, 1, won)
	installed, err := w.Bundles(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Len(t, installed, 1)
	require.Contains(t, w.current(t), "agent/x@"+installed[0].Documents[0].Version+"<a>")
}

// A failed installation changes nothing.
func TestInstallBundle_IsAtomic(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	one := bundleOf("a", "1.0.0", nil, "agent/x@v1", "agent/y@v1")
	w.install(t, one)
	before := w.dump(t)
	var long strings.Builder // longer than an index accepts
	for range 500 {
		long.WriteString(jig.NewEntityID("customer"))
	}
	_, err := w.InstallBundle(t.Context(), w.operator(), bundleOf("a", "2.0.0", over(one), "agent/x@v2", "agent/z@"+long.String()))
	require.Error(t, err)
	require.Equal(t, before, w.dump(t))
	w.install(t, bundleOf("a", "2.0.0", over(one), "agent/x@v2"))
}

// A document is put while a bundle that brings it is installed. The put version always ends up current: either it follows the
// installation, or the installation sees it and fails.
func TestInstallBundle_ConcurrentWithPut(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	before := bundleOf("a", "1.0.0", nil, "agent/x@v1")
	w.install(t, before)
	for i := range 12 {
		n := string(rune('a' + i))
		next := bundleOf("a", "1.0.1", over(before), "agent/x@bundle-"+n)
		var wait sync.WaitGroup
		var installErr, putErr error
		wait.Go(func() { _, installErr = w.InstallBundle(t.Context(), w.operator(), next) })
		wait.Go(func() { putErr = w.PutDocument(t.Context(), w.tenant, "agent", "x", "mine-"+n, nil) })
		wait.Wait()
		require.NoError(t, putErr)
		require.Equal(t, []string{"agent/x@mine-" + n}, w.current(t), "the bundle replaces no version that it has not seen")
		if installErr == nil {
			before = next
		} else {
			requireReason(t, jig.CodeConflict, "document_changed", installErr)
		}
		next = bundleOf("a", "1.1.0", replacing(before), "agent/x@again-"+n)
		w.install(t, next)
		before = next
	}
}

// An installation waits for an uncommitted change of one of its documents, and then sees the change.
func TestInstallBundle_WaitsForAnUncommittedPut(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	one := bundleOf("a", "1.0.0", nil, "agent/x@v1", "agent/y@v1")
	w.install(t, one)
	require.NoError(t, w.KeepDocument(t.Context(), w.tenant, "agent", "x", "mine", nil))
	two := bundleOf("a", "2.0.0", over(one), "agent/x@v2", "agent/y@v1")
	conn, err := pgx.Connect(t.Context(), storetest.URL(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "select set_config('jig.tenant', $1, true)", w.tenant)
	require.NoError(t, err)
	for _, sql := range []string{
		"update documents set current = false where name = 'x' and current",
		"update documents set current = true, bundle = '' where name = 'x' and version = 'mine'",
	} {
		tag, err := tx.Exec(t.Context(), sql)
		require.NoError(t, err)
		require.EqualValues(t, 1, tag.RowsAffected())
	}
	failed := make(chan error, 1)
	go func() {
		_, err := w.InstallBundle(t.Context(), w.operator(), two)
		failed <- err
	}()
	require.Eventually(t, func() bool {
		held := false
		row := conn.QueryRow(t.Context(), "select exists (select from pg_stat_activity a where pg_backend_pid() = any(pg_blocking_pids(a.pid)))")
		return row.Scan(&held) == nil && held
	}, 2*time.Minute, 5*time.Millisecond)
	require.NoError(t, tx.Commit(t.Context()))
	requireReason(t, jig.CodeConflict, "document_changed", <-failed)
	require.Equal(t, []string{"agent/x@mine", "agent/y@v1<a>"}, w.current(t))
}

func TestBundles_AreSeparatedByTenant(t *testing.T) {
	t.Parallel()
	w, other := newTenant(t), newTenant(t)
	w.install(t, bundleOf("a", "1.0.0", nil, "agent/x@v1"))
	_, err := other.InstallBundle(t.Context(), other.operator(), bundleOf("b", "1.0.0", requiring("a"), "agent/b@v1"))
	requireReason(t, jig.CodeInvalidInput, jig.ReasonBundleNotInstalled, err)
	require.True(t, other.install(t, bundleOf("c", "1.0.0", nil, "agent/x@v2")).Changed, "documents of another tenant do not matter")
	require.Equal(t, []string{"agent/x@v1<a>"}, w.current(t))
	require.Equal(t, []string{"agent/x@v2<c>"}, other.current(t))
	_, _, err = other.RemoveBundle(t.Context(), other.operator(), "a", "")
	requireCode(t, jig.CodeNotFound, err)
	direct(t, storetest.URL(t), other.tenant, func(tx pgx.Tx) {
		tag, err := tx.Exec(t.Context(), "update bundles set hash = 'x' where name = 'a'")
		require.NoError(t, err)
		require.Zero(t, tag.RowsAffected())
		_, err = tx.Exec(t.Context(), "update documents set body = ''")
		require.ErrorContains(t, err, "permission denied")
	})
	require.NoError(t, w.EraseTenant(t.Context(), w.tenant))
	require.Empty(t, w.dump(t))
	require.Equal(t, []string{"agent/x@v2<c>"}, other.current(t))
}
