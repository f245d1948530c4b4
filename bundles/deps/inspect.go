package deps

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/jig-run/jig"
)

// The facts that deps.inspect looks for, as named in its outputs known and missing.
const (
	factLicenses   = "licenses"
	factPublished  = "published_at"
	factLatest     = "latest_known"
	factBehind     = "versions_behind"
	factSize       = "size_bytes"
	factDirect     = "direct"
	factRetracted  = "retracted"
	factDeprecated = "deprecated"
)

type inspectInput struct {
	Module  string `json:"module"          jsonschema:"module path, e.g. github.com/jackc/pgx/v5"   minLength:"1" maxLength:"1000"`
	Version string `json:"version"         jsonschema:"the version as in go.mod, e.g. v5.12.0"      maxLength:"200"`
	Main    string `json:"main,omitempty"  jsonschema:"go.mod that requires the module, or its folder, relative to the working directory; for the output direct" maxLength:"4096"`
	AsOf    string `json:"as_of,omitempty" jsonschema:"time for which to compute the age, as RFC 3339 or a date" maxLength:"64"`
}

type inspectOutput struct {
	Module   string    `json:"module"`
	Version  string    `json:"version"`
	Licenses []license `json:"licenses" jsonschema:"empty if the module has no license file"`
	Risk     string    `json:"risk"     jsonschema:"the strictest of its licenses: low permissive, medium weak copyleft, high strong copyleft, unknown" enum:"low,medium,high,unknown"`
	// PublishedAt is the time of the version's tag or commit.
	PublishedAt string `json:"published_at,omitempty" jsonschema:"when the version was made, RFC 3339"`
	AgeDays     *int   `json:"age_days,omitempty"     jsonschema:"whole days from then to as_of; only with as_of"`
	LatestKnown string `json:"latest_known,omitempty" jsonschema:"newest release in the module cache"`
	// VersionsBehind counts releases, not time.
	VersionsBehind *int        `json:"versions_behind,omitempty" jsonschema:"number of newer releases in the module cache"`
	SizeBytes      *int64      `json:"size_bytes,omitempty"      jsonschema:"size of all files, unpacked"`
	Files          *int        `json:"files,omitempty"`
	Direct         *bool       `json:"direct,omitempty"          jsonschema:"whether main requires it directly; only with main"`
	Retracted      *retraction `json:"retracted,omitempty"       jsonschema:"present if the authors retracted the version"`
	Deprecated     string      `json:"deprecated,omitempty"      jsonschema:"the authors' notice, if they deprecated the module"`
	ModOf          string      `json:"mod_of,omitempty"          jsonschema:"version whose go.mod was read for retracted and deprecated: the newest in the cache"`
	Known          []string    `json:"known"                     jsonschema:"facts that were found; retracted and deprecated count as found if it is known that the version is not"`
	Missing        []string    `json:"missing"                   jsonschema:"facts that the module cache does not contain"`
}

// retraction says that a version was retracted.
type retraction struct {
	Rationale string `json:"rationale" jsonschema:"the reason, in the authors' words; may be empty"`
}

// Summary implements tools.Summarizer.
func (o inspectOutput) Summary() string {
	s := fmt.Sprintf("%s %s: risk %s", o.Module, o.Version, o.Risk)
	if o.VersionsBehind != nil {
		s += fmt.Sprintf(", %d versions behind", *o.VersionsBehind)
	}
	if o.Retracted != nil {
		s += ", retracted"
	}
	if o.Deprecated != "" {
		s += ", deprecated"
	}
	if len(o.Missing) > 0 {
		s += ", not known: " + strings.Join(o.Missing, ", ")
	}
	return s
}

// note records whether a fact was found.
func (o *inspectOutput) note(fact string, found bool) {
	if found {
		o.Known = append(o.Known, fact)
	} else {
		o.Missing = append(o.Missing, fact)
	}
}

func (f *family) inspect(ctx context.Context, inv jig.Invocation, in inspectInput) (inspectOutput, error) {
	asOf, err := moment(in.AsOf)
	if err != nil {
		return inspectOutput{}, err
	}
	if in.Version == "" {
		return inspectOutput{}, localReplacement(in.Module)
	}
	out := inspectOutput{Module: in.Module, Version: in.Version, Licenses: []license{}, Risk: riskUnknown, Known: []string{}, Missing: []string{}}
	absent, err := f.inspectFolder(ctx, in, &out)
	if err != nil {
		return inspectOutput{}, err
	}
	kept, err := f.download(ctx, in.Module)
	if err != nil {
		return inspectOutput{}, err
	}
	defer kept.close()
	if absent != nil && !slices.Contains(kept.held, in.Version) {
		return inspectOutput{}, absent
	}
	if err := kept.inspect(in.Version, asOf, &out); err != nil {
		return inspectOutput{}, err
	}
	if in.Main != "" {
		if out.Direct, err = f.direct(inv.Tenant, in); err != nil {
			return inspectOutput{}, err
		}
		out.note(factDirect, out.Direct != nil)
	}
	return out, nil
}

// inspectFolder inspects the unpacked module. absent is the NOT_FOUND error if it is not in the cache.
func (f *family) inspectFolder(ctx context.Context, in inspectInput, out *inspectOutput) (absent, err error) {
	root, err := f.open(ctx, in.Module, in.Version)
	if err != nil {
		if jig.CodeOf(err) != jig.CodeNotFound {
			return nil, err
		}
		out.note(factLicenses, false)
		return err, nil
	}
	defer root.Close()
	found, err := f.forms.scan(ctx, root)
	if err != nil {
		return nil, err
	}
	out.Licenses, out.Risk = append(out.Licenses, found...), strictest(found)
	out.note(factLicenses, true)
	return nil, nil
}

// direct reports whether a go.mod requires the module directly; nil if it does not require the module, or not in this version.
func (f *family) direct(tenant string, in inspectInput) (*bool, error) {
	name, raw, err := f.readModFile(tenant, in.Main)
	if err != nil {
		if e := jig.AsError(err); e.Field == "/path" {
			return nil, e.WithField("/main")
		}
		return nil, err
	}
	file, err := modfile.Parse(name, raw, nil)
	if err != nil {
		return nil, jig.AsError(badModFile("it does not parse: " + firstProblem(err))).WithField("/main")
	}
	for _, r := range file.Require {
		if used := replaced(file.Replace, r.Mod); used.Path == in.Module && used.Version == in.Version {
			direct := !r.Indirect
			return &direct, nil
		}
	}
	return nil, nil // nil: it is not known whether the module is required directly
}

// moment parses a time or a date; it returns the zero time for an empty text.
func moment(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, jig.Errorf(jig.CodeInvalidInput, "%q is not a point in time", text).WithField("/as_of").
		WithHint("write it as 2026-03-01T12:00:00Z or 2026-03-01")
}

func localReplacement(path string) error {
	return jig.Errorf(jig.CodeInvalidInput, "%s has no version: a local folder replaces it", path).WithField("/version").
		WithReason("local_replacement").WithHint("look for its license in that folder with file.list and file.read")
}

// strictest returns the risk of a module under all of these licenses.
func strictest(list []license) string {
	risk := riskUnknown
	for i, l := range list {
		if r := riskOf(l.SPDX); i == 0 || strictness(r) > strictness(risk) {
			risk = r
		}
	}
	return risk
}

// inspect adds facts about a version from the module's download folder.
func (d *download) inspect(version string, asOf time.Time, out *inspectOutput) error {
	published, err := d.published(version)
	if err != nil {
		return err
	}
	out.note(factPublished, !published.IsZero())
	if !published.IsZero() {
		out.PublishedAt = published.UTC().Format(time.RFC3339)
		if !asOf.IsZero() {
			days := max(int(asOf.Sub(published).Hours()/24), 0)
			out.AgeDays = &days
		}
	}
	var behind int
	out.LatestKnown, behind = d.newer(version)
	counted := out.LatestKnown != "" && d.counts(version)
	out.note(factLatest, out.LatestKnown != "")
	out.note(factBehind, counted)
	if counted {
		out.VersionsBehind = &behind
	}
	if out.SizeBytes, out.Files, err = d.size(version); err != nil {
		return err
	}
	out.note(factSize, out.SizeBytes != nil)
	file, of, err := d.newestMod()
	if err != nil {
		return err
	}
	out.note(factRetracted, file != nil)
	out.note(factDeprecated, file != nil)
	if file == nil {
		return nil
	}
	out.ModOf, out.Retracted = of, retractionOf(file, version)
	if file.Module != nil {
		out.Deprecated = file.Module.Deprecated
	}
	return nil
}
