package deps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
	"golang.org/x/mod/module"

	"github.com/jig-run/jig"
)

const (
	// maxLicenseFile bounds the part of a license file that is read, in bytes.
	maxLicenseFile = 1 << 20
	// minCoverage is the share of a file, in percent, that known licenses must cover for the file to count as recognized.
	minCoverage = 75
	// unrecognised takes the place of the SPDX id for a license file that matches no known license.
	unrecognised = "UNKNOWN"
)

type licenseInput struct {
	Module  string `json:"module"  jsonschema:"module path, e.g. github.com/jackc/pgx/v5"   minLength:"1" maxLength:"1000"`
	Version string `json:"version" jsonschema:"the version as in go.mod, e.g. v5.12.0"      maxLength:"200"`
}

type licenseOutput struct {
	Module   string    `json:"module"`
	Version  string    `json:"version"`
	Licenses []license `json:"licenses" jsonschema:"empty if the module has no license file"`
	Risk     string    `json:"risk"     jsonschema:"the strictest of its licenses: low permissive, medium weak copyleft, high strong copyleft, unknown" enum:"low,medium,high,unknown"`
}

type license struct {
	SPDX     string  `json:"spdx"     jsonschema:"SPDX id, or UNKNOWN if the file matches no known license"`
	Coverage float64 `json:"coverage" jsonschema:"percentage of the file that known licenses cover"`
	File     string  `json:"file"     jsonschema:"file at the module's root"`
}

// Summary implements tools.Summarizer.
func (o licenseOutput) Summary() string {
	var names []string
	for _, l := range o.Licenses {
		if !slices.Contains(names, l.SPDX) {
			names = append(names, l.SPDX)
		}
	}
	if len(names) == 0 {
		names = []string{"no license file"}
	}
	return fmt.Sprintf("%s %s: %s, risk %s", o.Module, o.Version, strings.Join(names, " and "), o.Risk)
}

func (f *family) license(ctx context.Context, _ jig.Invocation, in licenseInput) (licenseOutput, error) {
	if in.Version == "" {
		return licenseOutput{}, localReplacement(in.Module)
	}
	root, err := f.open(ctx, in.Module, in.Version)
	if err != nil {
		return licenseOutput{}, err
	}
	defer root.Close()
	out := licenseOutput{Module: in.Module, Version: in.Version}
	if out.Licenses, err = f.forms.scan(ctx, root); err != nil {
		return licenseOutput{}, err
	}
	out.Risk = strictest(out.Licenses)
	return out, nil
}

// open opens a module's folder in the cache.
func (f *family) open(ctx context.Context, path, version string) (*os.Root, error) {
	escapedPath, err := module.EscapePath(path)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "%q is not a module path", path).WithField("/module")
	}
	escapedVersion, err := module.EscapeVersion(version)
	if err != nil || module.CanonicalVersion(version) == "" {
		return nil, jig.Errorf(jig.CodeInvalidInput, "%q is not a version", version).WithField("/version").WithHint("give it as in go.mod, e.g. v1.2.3")
	}
	folder, err := f.cache.folder(ctx)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(filepath.Join(folder, filepath.FromSlash(escapedPath)+"@"+escapedVersion))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, jig.Errorf(jig.CodeNotFound, "%s %s is not in the module cache", path, version).WithField("/module").
			WithReason("not_in_module_cache").WithHint("run `go mod download`")
	}
	if err != nil {
		return nil, jig.Errorf(jig.CodeUnavailable, "the module cache cannot be read: %w", err)
	}
	return root, nil
}

// forms are the patterns that the family needs, compiled once.
type forms struct {
	file, notice, address *regexp.Regexp
}

func newForms() forms {
	return forms{
		// file matches names that are used for license files.
		file: regexp.MustCompile(`(?i)^((un)?licen[cs]es?|copying|copyright|notice|` +
			`(mit|bsd|apache|mpl|lgpl|gpl|agpl|isc)[-._]?(v?[0-9.]+[-._]?)?licen[cs]e)([-._].*)?$`),
		// notice matches files that name people and the licenses of parts but contain no terms.
		notice: regexp.MustCompile(`(?i)^(notice|copyright)`),
		// address matches the ways in which the Open Source Initiative writes its URLs; the library knows only www and the old form.
		address: regexp.MustCompile(`(?i)(www\.)?opensource\.org/licenses?/([a-z0-9.-]+)`),
	}
}

func (f forms) isLicense(name string) bool {
	return f.file.MatchString(name) && !strings.HasSuffix(strings.ToLower(name), ".go")
}

// scan returns the licenses of the files at a module's root. Notices only add licenses that no license file has.
func (f forms) scan(ctx context.Context, root *os.Root) ([]license, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, jig.Errorf(jig.CodeUnavailable, "the module cache cannot be read: %w", err)
	}
	var found, noticed []license
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("scan: %w", err)
		}
		name := entry.Name()
		if !entry.Type().IsRegular() || !f.isLicense(name) {
			continue
		}
		text, err := readStart(root, name)
		if err != nil {
			return nil, jig.Errorf(jig.CodeUnavailable, "%s cannot be read: %w", name, err)
		}
		if f.notice.MatchString(name) {
			noticed = append(noticed, f.recognise(name, text)...)
		} else {
			found = append(found, f.recognise(name, text)...)
		}
	}
	for _, l := range noticed {
		if !slices.ContainsFunc(found, func(other license) bool { return other.SPDX == l.SPDX }) {
			found = append(found, l)
		}
	}
	return found, nil
}

func readStart(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller adds the context
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxLicenseFile)) //nolint:wrapcheck // the caller adds the context
}

// recognise returns the licenses of one file, each once, in the order of their appearance.
func (f forms) recognise(name string, text []byte) (list []license) {
	coverage := licensecheck.Scan(f.address.ReplaceAll(text, []byte("www.opensource.org/licenses/$2")))
	percent := math.Round(coverage.Percent*10) / 10
	for _, match := range coverage.Match {
		if !slices.ContainsFunc(list, func(l license) bool { return l.SPDX == match.ID }) {
			list = append(list, license{SPDX: match.ID, Coverage: percent, File: name})
		}
	}
	if percent < minCoverage && !f.notice.MatchString(name) {
		list = append(list, license{SPDX: unrecognised, Coverage: percent, File: name})
	}
	return list
}
