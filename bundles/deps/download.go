package deps

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"github.com/jig-run/jig"
)

const (
	// maxList bounds the part of a version list that is read, and maxInfo the part of an .info file, in bytes.
	maxList = 1 << 20
	maxInfo = 64 << 10
)

// download is the download folder of a module in the module cache, cache/download/<module>/@v, as the go command writes it
// (https://go.dev/ref/mod#module-cache). It holds data about versions, whether or not they are unpacked elsewhere in the cache.
type download struct {
	// root is nil if the folder does not exist.
	root *os.Root
	// listed are the versions that a proxy listed when it was last asked; held are those for which the folder has a file.
	listed, held []string
}

// download opens the download folder of a module.
func (f *family) download(ctx context.Context, path string) (*download, error) {
	escaped, err := module.EscapePath(path)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "%q is not a module path", path).WithField("/module")
	}
	cache, err := f.cache.folder(ctx)
	if err != nil {
		return nil, err
	}
	d := &download{}
	d.root, err = os.OpenRoot(filepath.Join(cache, "cache", "download", filepath.FromSlash(escaped), "@v"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d, nil
	case err != nil:
		return nil, unreadable(err)
	}
	if err := d.readNames(); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *download) close() {
	if d.root != nil {
		_ = d.root.Close()
	}
}

func unreadable(err error) error {
	return jig.Errorf(jig.CodeUnavailable, "the module cache cannot be read: %w", err)
}

func (d *download) readNames() error {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return unreadable(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		for _, ending := range []string{".info", ".mod", ".zip"} {
			if escaped, ok := strings.CutSuffix(name, ending); ok {
				if v, err := module.UnescapeVersion(escaped); err == nil && semver.IsValid(v) && !slices.Contains(d.held, v) {
					d.held = append(d.held, v)
				}
			}
		}
	}
	list, err := d.read("list", maxList)
	for line := range strings.Lines(string(list)) {
		if fields := strings.Fields(line); len(fields) > 0 && semver.IsValid(fields[0]) {
			d.listed = append(d.listed, fields[0])
		}
	}
	return err
}

// read returns the first limit bytes of a file; nil if the file does not exist.
func (d *download) read(name string, limit int64) ([]byte, error) {
	if d.root == nil {
		return nil, nil
	}
	f, err := d.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return nil, unreadable(err)
	}
	return raw, nil
}

// fileOf returns the name of a version's file.
func fileOf(version, ending string) string {
	escaped, err := module.EscapeVersion(version)
	if err != nil { // the versions come from such names or have been checked
		return ""
	}
	return escaped + ending
}

// published returns when a version was made: the time of its tag or commit. A pseudo-version has that time in its name.
func (d *download) published(version string) (time.Time, error) {
	raw, err := d.read(fileOf(version, ".info"), maxInfo)
	if err != nil {
		return time.Time{}, err
	}
	var info struct{ Time time.Time }
	if json.Unmarshal(raw, &info) == nil && !info.Time.IsZero() {
		return info.Time, nil
	}
	if module.IsPseudoVersion(version) {
		if t, err := module.PseudoVersionTime(version); err == nil {
			return t, nil
		}
	}
	return time.Time{}, nil
}

// releases returns the versions that the cache knows, in ascending order, without prereleases unless there are only prereleases.
func (d *download) releases() []string {
	var releases, previews []string
	for _, v := range slices.Concat(d.listed, d.held) {
		switch {
		case module.IsPseudoVersion(v):
		case semver.Prerelease(v) == "":
			releases = append(releases, v)
		default:
			previews = append(previews, v)
		}
	}
	if len(releases) == 0 {
		releases = previews
	}
	semver.Sort(releases)
	return slices.Compact(releases)
}

// newer returns the newest release that the cache knows, provided that it is not older than the version, and the number of newer releases.
func (d *download) newer(version string) (latest string, behind int) {
	for _, v := range d.releases() {
		switch order := semver.Compare(v, version); {
		case order > 0:
			behind++
			latest = v
		case order == 0:
			latest = v
		}
	}
	return latest, behind
}

// counts reports whether the list of versions was fetched after this version was made, so that newer ones can be counted.
func (d *download) counts(version string) bool {
	if module.IsPseudoVersion(version) {
		return len(d.listed) > 0
	}
	return slices.Contains(d.listed, version)
}

// size returns the unpacked size of a version in bytes and its number of files; nil if the cache has no archive of it.
func (d *download) size(version string) (size *int64, files *int, err error) {
	if d.root == nil {
		return nil, nil, nil
	}
	f, err := d.root.Open(fileOf(version, ".zip"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, unreadable(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, unreadable(err)
	}
	archive, err := zip.NewReader(f, info.Size())
	if err != nil { // an interrupted download
		return nil, nil, nil // unknown
	}
	var bytes int64
	var count int
	for _, entry := range archive.File {
		if !entry.FileInfo().IsDir() {
			bytes += entry.FileInfo().Size()
			count++
		}
	}
	return &bytes, &count, nil
}

// newestMod reads the go.mod of the newest version that has one in the folder, because authors declare retractions there
// (https://go.dev/ref/mod#go-mod-file-retract). It returns nil if no go.mod can be read.
func (d *download) newestMod() (file *modfile.File, version string, err error) {
	known := d.releases()
	for _, v := range slices.Backward(known) {
		raw, err := d.read(fileOf(v, ".mod"), maxModFile)
		if err != nil {
			return nil, "", err
		}
		if raw == nil {
			continue
		}
		if file, err = modfile.ParseLax(fmt.Sprintf("go.mod of %s", v), raw, nil); err == nil {
			return file, v, nil
		}
	}
	return nil, "", nil
}

// retractionOf returns the retraction of a version that a go.mod declares; nil if there is none.
func retractionOf(file *modfile.File, version string) *retraction {
	for _, r := range file.Retract {
		if semver.Compare(r.Low, version) <= 0 && semver.Compare(version, r.High) <= 0 {
			return &retraction{Rationale: r.Rationale}
		}
	}
	return nil
}
