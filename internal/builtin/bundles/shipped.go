package bundles

import (
	"context"
	"log/slog"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

// Documents reads the record of all bundles that were ever installed.
type Documents interface {
	// DocumentAt returns a version of a document that a tenant has or had; NOT_FOUND if the tenant never had it.
	DocumentAt(ctx context.Context, tenant, kind, name, version string) ([]byte, error)
}

// InstallShipped installs a bundle that ships with the program, once per hash: a bundle that somebody removed stays removed, and a document
// that somebody registered under the name of a shipped one is kept. Several processes may do so at the same time.
func (o Options) InstallShipped(ctx context.Context, documents Documents, by jig.Invocation, b spec.Bundle) error {
	name := slog.String("bundle", b.Manifest.Name)
	_, err := documents.DocumentAt(ctx, by.Tenant, spec.KindBundle.Stored(), b.Manifest.Name, b.Hash)
	if err == nil || jig.CodeOf(err) != jig.CodeNotFound {
		return err
	}
	done, err := o.Install(ctx, by, b, nil, false)
	switch jig.CodeOf(err) { //nolint:exhaustive // any other error keeps the worker from starting
	case jig.CodeConflict, jig.CodeInvalidInput:
		by.Logger.WarnContext(ctx, "a shipped bundle was not installed, because it conflicts with what the tenant has", name,
			slog.String("tenant", by.Tenant), slog.String("why", err.Error()))
		return nil
	}
	if err != nil {
		return err
	}
	if done.Changed {
		by.Logger.InfoContext(ctx, "bundle installed", name, slog.String("version", done.Version), slog.Int("documents", len(done.Documents)))
	}
	return nil
}
